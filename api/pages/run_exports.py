"""The runs that a filter finds, as a file: CSV for people, or lines of JSON as the API shows them."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from flask import Response, stream_with_context

from scheduler_app.api.pages.formatting import schedules_of, state_words
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.event import EventOutput
from scheduler_app.api.wire.schedule import event_shown
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store.events.events import EventRecord
from scheduler_app.store.paging import PageRequest

#: Runs of a file, and those that are read at a time.
MOST_EXPORTED: Final = 10_000
PAGE: Final = 500
#: A filter that finds few is looked for so often, each time as far as one page of a list looks.
MOST_LOOKS: Final = 100
COLUMNS: Final = (
    *("due", "how it ended", "schedule", "schedule id", "tags", "answer", "error", "tries"),
    *("late ms", "took ms", "ended", "run id"),
)
#: What a spreadsheet takes for the beginning of a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def newest_runs(window: PageRequest, which: dict[str, Any]) -> Iterator[list[EventRecord]]:
    """The newest `MOST_EXPORTED` runs of the tenant in a window, some at a time."""
    left, lists = MOST_EXPORTED, services().event_lists
    for _ in range(MOST_LOOKS):
        found = lists.page(tenant(), replace(window, limit=min(PAGE, left)), **which)
        yield found.rows
        left -= len(found.rows)
        if found.next is None or left <= 0:
            return
        window = replace(window, after=found.next, skip=0)


def as_json_lines(pages: Iterable[list[EventRecord]], name: str) -> Response:
    schema = EventOutput()
    lines = (
        json.dumps(schema.dump(event_shown(run)), ensure_ascii=False) + "\n" for page in pages for run in page
    )
    return _file(lines, "application/x-ndjson", f"{name}.ndjson")


def as_csv(pages: Iterable[list[EventRecord]], name: str) -> Response:
    return _file(_csv_lines(pages), "text/csv", f"{name}.csv")


def _file(lines: Iterator[str], mimetype: str, name: str) -> Response:
    answer = Response(stream_with_context(lines), mimetype=mimetype)
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def _csv_lines(pages: Iterable[list[EventRecord]]) -> Iterator[str]:
    yield _csv([COLUMNS])
    for page in pages:
        schedules = {each.id: each for each in schedules_of(page)}
        yield _csv(_cells(run, schedules.get(run.schedule_id)) for run in page)


def _csv(rows: Iterable[Iterable[object]]) -> str:
    written = io.StringIO()
    csv.writer(written).writerows([[_harmless(cell) for cell in row] for row in rows])
    return written.getvalue()


def _harmless(cell: object) -> object:
    """A text that a spreadsheet shows as it is: names and errors are of others."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _cells(run: EventRecord, schedule: Schedule | None) -> tuple[object, ...]:
    last = run.attempts[-1] if run.attempts else {}
    return (
        shown_instant(run.run_time),
        state_words(run.state),
        schedule.name if schedule else "",
        name_of(run.schedule_id) if run.schedule_id else "",
        " ".join(schedule.tags) if schedule else "",
        *(last.get(name) for name in ("status_code", "error")),
        len(run.attempts),
        *(last.get(name) for name in ("lag_ms", "duration_ms")),
        shown_instant(run.archived_at) if run.archived_at else "",
        name_of(run.id),
    )
