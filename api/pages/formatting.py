"""How pages show durations, states, names of schedules and small charts.

Charts are SVG drawn here: no script, no style, and a table beside each for readers. Sizes are in units of the
drawing; the page's stylesheet gives colours by class, in light and dark.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from math import log10
from typing import Any

from markupsafe import Markup, escape

from scheduler_app.api.pages.times import precise
from scheduler_app.api.services import services
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.states import State
from scheduler_app.store.events.events import EventRecord
from scheduler_app.store.events.figures import EventSummary

_NAME = re.compile(r"`([^`]*)`")
#: The words of the specification for null, and the words of a form, in which a person empties the field.
_NULL = (("A null takes it away", "Empty: nobody is told"), ("null for never", "empty for never"))


def duration(milliseconds: float) -> str:
    """`12 ms`, `1.5 s`, `10 min`, `2.5 h`."""
    if abs(milliseconds) < 1_000:
        return f"{milliseconds:.0f} ms"
    for size, unit in ((7_200_000, "h"), (120_000, "min")):
        if abs(milliseconds) >= size:
            return f"{_short(milliseconds / (3_600_000 if unit == 'h' else 60_000))} {unit}"
    return f"{_short(milliseconds / 1000)} s"


def counted(number: int, thing: str) -> str:
    """`1 run`, `12,000 runs`."""
    return f"{number:,} {thing}{'s' if number != 1 else ''}"


def form_words(text: str) -> str:
    """Rewrites a sentence of the specification, or a default, for a form, which shows fields by their labels
    and values in quotation marks."""
    for api, form in _NULL:
        text = text.replace(api, form)
    if text.strip("`").startswith("["):
        return re.sub(r'[`"\[\]]', "", text)
    whole = _NAME.fullmatch(text)
    return _label(whole[1]).strip("“”") if whole else _NAME.sub(lambda found: _label(found[1]), text)


def _label(name: str) -> str:
    """`run_overlap` is `run overlap` on its form; values stand in quotation marks."""
    return name.replace("_", " ") if name.isidentifier() and "_" in name else f"“{name.strip(chr(34))}”"


#: How each state of an event, and of a schedule, looks (a class of the stylesheet), and its words.
_STATES = {
    "ready_queue": ("next", "To come"),
    "worker_queue": ("next", "About to run"),
    "running": ("running", "Running"),
    "retrying": ("retry", "Trying again"),
    "completed": ("ok", "Done"),
    "error": ("failed", "Failed"),
    "cancelled": ("skipped", "Cancelled"),
    "expired": ("skipped", "Too late"),
    "skipped": ("skipped", "Skipped"),
    "active": ("ok", "Active"),
    "paused": ("paused", "Paused"),
    "finished": ("skipped", "Finished"),
    "deleted": ("skipped", "Deleted"),
}


def state_look(state: str) -> str:
    return _STATES.get(state, ("next", ""))[0]


def state_words(state: str) -> str:
    """A state in words for people; what has none is shown as it is."""
    return _STATES.get(state, ("", state.replace("_", " ").capitalize()))[1]


def short_count(number: int) -> str:
    """`576`, `1.3k`, `12k`, `3.4M`: where there is little room."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.0f}{unit}" if number >= 10 * size else f"{_short(number / size)}{unit}"
    return str(number)


def status_words(status: object) -> str:
    """`503 Service Unavailable`; "" for no status."""
    if not isinstance(status, int):
        return ""
    return f"{status} {next((each.phrase for each in HTTPStatus if each == status), '')}".strip()


def value_words(value: object) -> str:
    """The value of a field that was changed; lists and what has fields of its own, as the API writes them."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "yes", False: "no"}[value]
    if not isinstance(value, list | dict):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def answer_said(attempt: Mapping[str, Any]) -> str:
    """What the receiver of an attempt said, or why it could say nothing."""
    error = str(attempt.get("error") or "")
    status = status_words(attempt.get("status_code"))
    # The error of an answer that failed by its status alone repeats the status.
    return error if not status else f"{status}, {error}" if error and str(status[:3]) not in error else status


#: What templates call by these names.
FILTERS = (
    answer_said,
    counted,
    duration,
    form_words,
    state_look,
    state_words,
    status_words,
    short_count,
    value_words,
)


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def schedules_of(events: Iterable[EventRecord]) -> list[Schedule]:
    """The schedules of events, deleted ones included; none where the document is gone or corrupt. A message
    belongs to no schedule."""
    return list(services().schedules.even_deleted({event.schedule_id for event in events}).values())


def names_of(events: Iterable[EventRecord]) -> dict[str, str]:
    """The name of each event's schedule, by the schedule's id."""
    return {each.id: each.name for each in schedules_of(events)}


def names_of_ids(schedule_ids: Iterable[str]) -> dict[str, str]:
    """The same of schedules' ids."""
    return {each.id: each.name for each in services().schedules.even_deleted(set(schedule_ids)).values()}


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle of a chart, and what stands beside it when a pointer rests on it."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str
    link: str = ""


@dataclass(frozen=True, slots=True)
class Dot:
    """A point of a scatter."""

    x: float
    y: float
    kind: str
    title: str
    link: str


def stacked_bars(
    columns: Sequence[tuple[str, Mapping[str, int]]], kinds: Sequence[str], width: float, height: float
) -> list[Bar]:
    """Bars above each other for each column, in the order of `kinds`; the highest column fills the height."""
    highest = max((sum(counts.values()) for _, counts in columns), default=0) or 1
    step = width / max(len(columns), 1)
    bars = []
    for number, (label, counts) in enumerate(columns):
        top = height
        for kind in kinds:
            if count := counts.get(kind, 0):
                tall = max(count / highest * height, 1.0)
                top -= tall
                title = f"{label}: {count} {kind.replace('_', ' ')}"
                bars.append(Bar(round(number * step, 1), round(top, 1), round(max(step - 1, 1), 1),
                                round(tall, 1), kind, title))  # fmt: skip
    return bars


def on_log_scale(value: float, least: float, most: float, height: float) -> float:
    """The height of a value above the bottom of a chart whose scale goes from `least` to `most`, both
    positive."""
    share = (log10(max(value, least)) - log10(least)) / (log10(most) - log10(least) or 1)
    return round(min(share, 1.0) * height, 1)


def run_mark(run: EventSummary, x: float, width: float, done: float, whole: float) -> Markup:
    """One run in a strip of a schedule's last runs; height and shape tell the outcome, not colour alone: as
    tall as `done` where it is done, as the `whole` picture where it failed. A list has a thousand of them: a
    macro takes five times as long."""
    kind = "rect"
    if run.state is State.COMPLETED and run.tries > 1:
        kind = "path"
        form = f'class="f-warn" d="M{x} {whole}v-{done}l{width / 2}-4 {width / 2} 4v{done}z"'
    elif run.state is State.COMPLETED:
        form = f'class="f-ok" x="{x}" y="{whole - done}" width="{width}" height="{done}" rx="1"'
    elif run.state is State.ERROR:
        form = f'class="f-bad" x="{x}" y="0" width="{width}" height="{whole}" rx="1"'
    elif run.state in (State.RETRYING, State.RUNNING):
        form = f'class="f-warn" x="{x}" y="{whole / 2}" width="{width}" height="{whole / 2}" rx="1"'
    else:
        form = f'class="f-off" x="{x}" y="{whole - 3}" width="{width}" height="2.5"'
    title = escape(f"{precise(run.run_time)}: {state_words(run.state).lower()}")
    # Numbers, and a title that is escaped.
    return Markup(f"<{kind} {form}><title>{title}</title></{kind}>")  # noqa: S704
