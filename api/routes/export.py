"""/api/v1/schedules/export: every schedule as a line of JSON, as POST takes it."""

import json
from collections.abc import Iterable, Iterator
from itertools import chain

from flask import Response

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire import ScheduleChoice
from scheduler_app.api.wire.presenters import exported
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Schedules
from scheduler_app.store.paging import Window
from scheduler_app.store.schedules.corrupt import CorruptSchedule

NDJSON = "application/x-ndjson"
#: Schedules read at a time: all of them wait in memory for the client, and their bodies may be large.
A_PAGE = 25
A_PIECE = 64 * 1024
LINES = {
    "type": "string",
    "description": "A JSON object a line, newest first, each as `POST /api/v1/schedules` and the items of"
    " `POST /api/v1/schedules/bulk` take it. A rule has its DTSTART made explicit, so that it fires at the"
    " same instants. Header values, the values of the URL's query and bodies are masked. Where the API has a"
    " SECRETS_KEY, `sealed` holds them, encrypted with it: an API that has the same key takes them back, for"
    " the same origin. Without it a creation refuses the masks: put the real ones there. Signing secrets are"
    " made anew. The state is part of it: what is paused here is paused where it is taken, and an active"
    " schedule's `run_at` that has passed meanwhile is refused there.",
}

blueprint = ApiBlueprint(
    "export", __name__, url_prefix="/api/v1/schedules", description="All schedules, to keep or move"
)


@blueprint.route("/export", methods=["GET"])
@blueprint.arguments(ScheduleChoice, location="query")
@blueprint.response(200, LINES, content_type=NDJSON)
def export_schedules(query: Loaded) -> Response:
    """Export schedules as NDJSON, however many there are"""
    pages = _pages(services().store.schedules, query)
    # The first page is read here: if MongoDB does not answer, the status can still say so.
    begun = chain([next(pages)], pages)
    now, secret_box = services().now(), services().store.secret_box
    lines = (_line(exported(schedule, now, secret_box)) for schedule in chain.from_iterable(begun))
    return Response(_pieces(lines), mimetype=NDJSON)


def _pages(schedules: Schedules, query: Loaded) -> Iterator[list[Schedule | CorruptSchedule]]:
    """Pages of schedules. A single cursor of MongoDB would not survive a slow client or a failover."""
    window: Window | None = Window(limit=A_PAGE)
    while window is not None:
        found = schedules.page(window, tenant=tenant(), **query)
        yield found.rows
        window = Window(limit=A_PAGE, after=found.next) if found.next else None


def _pieces(found: Iterable[str]) -> Iterator[str]:
    """The lines in pieces of at least `A_PIECE` characters, which are worth sending."""
    lines: list[str] = []
    size = 0
    for line in found:
        lines.append(line)
        size += len(line)
        if size >= A_PIECE:
            yield "".join(lines)
            lines, size = [], 0
    yield "".join(lines)


def _line(view: View) -> str:
    return json.dumps(view, ensure_ascii=False, separators=(",", ":")) + "\n"
