"""The `beat_schedule` of an application. This imports the application, as beat does."""

import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any

from scheduler_app.cli.celery_beat.crontab import crontab_trigger
from scheduler_app.cli.celery_beat.entry import MAX_ENTRIES, SOLAR, Entry, Found
from scheduler_app.cli.celery_beat.interval import interval_trigger, seconds
from scheduler_app.cli.entry_import import NotImportable, Refused
from scheduler_app.cli.errors import CannotStart
from scheduler_app.client import Json

_FIELDS = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")


def read_application(place: str, timezone: str | None) -> Iterator[Found]:
    """Every entry of the application at `module:attribute`. `timezone` is that of crontabs; None for the
    application's own. Raises CannotStart."""
    app = _application(place)
    # What beat does before it reads its schedule: on_after_finalize and conf.imports may add to it.
    app.loader.init_worker()
    app.finalize()
    entries = app.conf.beat_schedule or {}
    if len(entries) > MAX_ENTRIES:
        raise CannotStart(f"beat_schedule has more than {MAX_ENTRIES:,} entries")
    zone = timezone or str(app.conf.timezone or "UTC")
    for name, entry in entries.items():
        try:
            yield _entry(str(name), entry, zone)
        except NotImportable as refused:
            yield Refused(str(name), str(refused))


def _application(place: str) -> Any:
    module, _, attribute = place.partition(":")
    sys.path.insert(0, "")
    try:
        app = getattr(import_module(module), attribute or "app", None)
    except ModuleNotFoundError as error:
        raise CannotStart(
            f"importing {module} needs {error.name}, which is not installed here: run this where your"
            " application runs, and in its folder"
        ) from None
    except Exception as error:
        # It is the user's own code that fails: anything may come.
        raise CannotStart(f"importing {module} failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove("")
    if not hasattr(app, "conf") or not hasattr(app, "finalize"):
        raise CannotStart(f"{module} has no Celery application {attribute or 'app'}; give --app module:name")
    return app


def _entry(name: str, given: Any, timezone: str) -> Entry:
    if not isinstance(given, Mapping):
        names = ("task", "schedule", "args", "kwargs", "options")
        given = {each: getattr(given, each, None) for each in names}
    trigger, notes = _trigger(given.get("schedule"), timezone)
    if given.get("relative"):
        notes = (*notes, "relative: it counts from its import, and not from round times")
    return Entry(
        name=name,
        task=str(given.get("task") or name),
        trigger=trigger,
        args=given.get("args") or (),
        kwargs=given.get("kwargs") or {},
        options=given.get("options") or {},
        notes=notes,
    )


def _trigger(schedule: Any, timezone: str) -> tuple[Json, tuple[str, ...]]:
    """By the names of Celery's classes: whoever reads a dump needs no Celery. A class derived from one of
    them may mean something else."""
    if isinstance(schedule, timedelta):
        return interval_trigger(schedule), ()
    if isinstance(schedule, (int, float)) and not isinstance(schedule, bool):
        return interval_trigger(seconds(schedule)), ()
    kind = f"{type(schedule).__module__}.{type(schedule).__qualname__}"
    if kind == "celery.schedules.crontab":
        fields = {name: getattr(schedule, f"_orig_{name}") for name in _FIELDS}
        return crontab_trigger(fields, timezone), ()
    if kind == "celery.schedules.schedule":
        relative = ("relative: it counts from its import, and not from round times",)
        return interval_trigger(schedule.run_every), relative if schedule.relative else ()
    if kind == "celery.schedules.solar":
        raise NotImportable(SOLAR)
    raise NotImportable(f"its schedule is a {kind}, of which only its own code knows when it is due")
