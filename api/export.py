"""/api/schedules/export: every schedule as a line, in the form in which POST takes it back."""

import json
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any

from flask import Response

from api.noun import Noun
from api.schemas import ScheduleChoice
from api.services import services
from api.trigger_fields import shown_value
from scheduler_app.domain.masking import MASK, masked, masked_url
from scheduler_app.domain.schedule import TENANT, Schedule, ScheduleState
from scheduler_app.store import Envelope, Schedules
from scheduler_app.store.listing import Window
from scheduler_app.store.sealed_action import sealed_action
from scheduler_app.store.unreadable import Unreadable

NDJSON = "application/x-ndjson"
#: Schedules that wait in memory for a reader; their bodies may be large.
A_PAGE = 25
A_PIECE = 64 * 1024
LINES = {
    "type": "string",
    "description": "A JSON object a line, newest first, each as `POST /api/schedules` and the items of"
    " `POST /api/schedules/bulk` take it. A rule has its DTSTART made explicit, so that it fires at the same"
    " instants. Header values, the values of the URL's query and bodies are masked. Where the API has a"
    " SECRETS_KEY, `sealed` holds them, encrypted with it: an API that has the same key takes them back, for"
    " the same origin. Without it a creation refuses the masks: put the real ones there. Signing secrets are"
    " made anew. The state is part of it: what is paused here is paused where it is taken, and an active"
    " schedule's `run_at` that has passed meanwhile is refused there.",
}

blueprint = Noun(
    "export", __name__, url_prefix="/api/schedules", description="All schedules, to keep or move"
)


@blueprint.route("/export", methods=["GET"])
@blueprint.arguments(ScheduleChoice, location="query")
@blueprint.response(200, LINES, content_type=NDJSON)
def export_schedules(query: dict[str, Any]) -> Response:
    """Export schedules as NDJSON, however many there are"""
    pages = _pages(services().store.schedules, query)
    # The first one now: if MongoDB is away, that is still an answer's status.
    begun = chain([next(pages)], pages)
    line = partial(_line, envelope=services().store.envelope)
    return Response(_pieces(map(line, chain.from_iterable(begun))), mimetype=NDJSON)


def _pages(schedules: Schedules, query: dict[str, Any]) -> Iterator[list[Schedule | Unreadable]]:
    """Page by page: a cursor of MongoDB's would end where a reader is slow or a primary falls."""
    window: Window | None = Window(limit=A_PAGE)
    while window is not None:
        found = schedules.page(window, tenant=TENANT, **query)
        yield found.rows
        window = Window(limit=A_PAGE, after=found.following) if found.following else None


def _pieces(found: Iterable[str]) -> Iterator[str]:
    """Lines, as many as make up a piece that is worth sending."""
    lines: list[str] = []
    size = 0
    for line in found:
        lines.append(line)
        size += len(line)
        if size >= A_PIECE:
            yield "".join(lines)
            lines, size = [], 0
    yield "".join(lines)


def _line(schedule: Schedule | Unreadable, envelope: Envelope) -> str:
    return json.dumps(_asked(schedule, envelope), ensure_ascii=False, separators=(",", ":")) + "\n"


def _asked(schedule: Schedule | Unreadable, envelope: Envelope) -> dict[str, Any]:
    """The schedule as somebody would ask for it. What can no longer be read says why; nobody takes that for
    a schedule, and nothing is left out silently."""
    if isinstance(schedule, Unreadable):
        return {"id": schedule.schedule_id, "reason": schedule.reason}
    trigger, action, retry = schedule.trigger, schedule.action, schedule.retry
    given: dict[str, Any] = {
        "id": schedule.id,
        "name": schedule.name,
        **{name: shown_value(value) for name, value in trigger.portable(schedule.created_at).items()},
        "timezone": trigger.timezone,
        "gap": trigger.gap,
        "overlap": trigger.overlap,
        "calendar": schedule.calendar.name if schedule.calendar else None,
        "on_holiday": schedule.calendar.on_holiday if schedule.calendar else None,
        "callback_url": masked_url(action.url),
        "method": action.method,
        "headers": dict(masked(action.headers)) or None,
        "max_retries": retry.max_retries,
        "retry_backoff_seconds": retry.backoff_seconds,
        "retry_backoff_max_seconds": retry.backoff_max_seconds,
        "retry_codes": list(retry.codes.written),
        "timeout_seconds": schedule.timeout_seconds,
        "success_codes": list(schedule.success.written),
        "tags": list(schedule.tags) or None,
        "signing": True if schedule.signing else None,
        "sealed": sealed_action(action, envelope),
        "state": schedule.state.value,
        "reason": schedule.reason if schedule.state is ScheduleState.ERROR else None,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if action.body is not None:
        given[action.body.kind.value] = MASK
    return given
