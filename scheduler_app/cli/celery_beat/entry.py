"""An entry of a beat as it was read, and the schedule that it becomes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from scheduler_app.cli.entry_import import Entry, NotImportable, RefusedEntry
from scheduler_app.client import Json

MAX_ENTRIES: Final = 10_000
MAX_BYTES: Final = 16 * 1024 * 1024
#: What every imported schedule is tagged with.
TAG: Final = "celery-beat"
#: Why no solar event is taken over.
SOLAR: Final = (
    "a solar event moves with the sun at a place, which no calendar's rule says; give the task a time of day"
)
#: Why a schedule is paused that was disabled.
DISABLED_NOTE: Final = "disabled in Celery beat"
MAX_PURPOSE: Final = 2_000
#: Options of `apply_async` that an action `celery_task` has too.
_OPTIONS: Final = frozenset(("queue", "priority", "expires", "headers"))


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatEntry(Entry):
    """What a beat sends, and when."""

    task: str
    args: object = field(default=(), repr=False)
    kwargs: object = field(default_factory=dict, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Those of `apply_async`."""
    purpose: str = ""


FoundEntry = BeatEntry | RefusedEntry


def schedule_of(entry: BeatEntry, broker: str) -> Json:
    """The API's fields of the schedule, but its id. Raises NotImportable."""
    action: Json = {"type": "celery_task", "task": entry.task, "broker": broker}
    action |= _arguments(entry) | _options(entry.options)
    schedule = {"name": entry.name, "tags": [TAG], "action": action, **entry.trigger}
    if entry.purpose:
        schedule["purpose"] = entry.purpose[:MAX_PURPOSE]
    if not entry.enabled:
        schedule |= {"state": "paused", "note": DISABLED_NOTE}
    return schedule


def _arguments(entry: BeatEntry) -> Json:
    args = list(entry.args) if isinstance(entry.args, tuple) else entry.args
    if not isinstance(args, list) or not isinstance(entry.kwargs, Mapping):
        raise NotImportable("its args must be a list, and its kwargs an object")
    kwargs = dict(entry.kwargs)
    try:
        json.dumps([args, kwargs], allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise NotImportable("its arguments are not JSON; give the task what JSON can say") from None
    return {name: value for name, value in (("args", args), ("kwargs", kwargs)) if value}


def _options(options: Mapping[str, Any]) -> Json:
    given = {name: value for name, value in options.items() if value not in (None, "", {})}
    unknown = sorted(str(name) for name in given if name not in _OPTIONS)
    if unknown:
        raise NotImportable(
            f"its options {', '.join(unknown)} have no equivalent; leave them out, or give them to the task"
        )
    expires = given.get("expires")
    if expires is not None:
        given["expires"] = _seconds(expires)
    return given


def _seconds(expires: object) -> int:
    seconds = expires.total_seconds() if isinstance(expires, timedelta) else expires
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds != int(seconds):
        raise NotImportable("its option expires must be whole seconds from when the task is sent")
    return int(seconds)
