"""One run, and what people do with one."""

import shlex
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from flask import render_template
from werkzeug.wrappers import Response

from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.pages.run_neighbours import around
from scheduler_app.api.pages.run_words import text_for_customer, verdict_of
from scheduler_app.api.pages.schedule import curl
from scheduler_app.api.pages.times import viewer_zone
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.message import message_shown
from scheduler_app.api.wire.schedule import schedule_shown
from scheduler_app.domain.action import origin_of
from scheduler_app.domain.http_action import HttpAction, destination_key
from scheduler_app.domain.ids import WholeId, name_of, whole_id
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.states import LIVING, STATE_DESCRIPTIONS, Kind, State
from scheduler_app.store.events.events import EventRecord

#: A worker has taken an event in these states, or it is over.
NOT_CANCELLABLE = frozenset(state for state in State if STATE_DESCRIPTIONS[state].final) | {State.RUNNING}
#: The steps of an event up to its first attempt, by the state whose line in the history has the time.
_STEPS = ((State.WORKER_QUEUE, "dispatched"), (State.RUNNING, "claimed"))


class HistoryStep(NamedTuple):
    """A step of an event on its way to its receiver."""

    name: str
    at: datetime
    after_ms: float | None
    """Since the step before it."""


@blueprint.get("/events/<event:event_id>")
@forms.takes_query(forms.ActionResultQuery)
def event(query: Loaded, event_id: WholeId) -> str:
    assembly = services()
    found = assembly.events.get(event_id)
    schedule = assembly.schedules.even_deleted([found.schedule_id]).get(found.schedule_id)
    message, now = _message(found), assembly.now()
    request = schedule_shown(schedule, now) if schedule else message or {}
    next_at = request.get("next_run_at")
    return render_template(
        "event.html",
        event=found,
        names={schedule.id: schedule.name} if schedule else {},
        life=STATE_DESCRIPTIONS[found.state],
        living=found.state in LIVING,
        cancellable=found.state not in NOT_CANCELLABLE,
        steps=steps(found),
        verdict=verdict_of(found),
        tries=tries(found, now),
        lag_ms=found.attempts[0].get("lag_ms") if found.attempts else None,
        size=PICTURE,
        curl=_curl(found, request) if schedule else None,
        customer_text=_customer_text(found, request, schedule, now),
        message=message,
        around=around(
            found, _receiver(schedule, message), next_at if isinstance(next_at, datetime) else None
        ),
        done=query.get("done"),
    )


@blueprint.post("/events/<event:event_id>/send-again")
@forms.takes_form(forms.NoFields)
def send_again(_: Loaded, event_id: WholeId) -> Response:
    assembly = services()
    assembly.events.redrive(event_id, assembly.now())
    return to_page("event", event_id=event_id, done="sent again")


@blueprint.post("/events/<event:event_id>/cancel")
@forms.takes_form(forms.NoFields)
def cancel(_: Loaded, event_id: WholeId) -> Response:
    assembly = services()
    assembly.events.cancel(event_id, assembly.now())
    return to_page("event", event_id=event_id, done="cancelled")


def _message(found: EventRecord) -> View | None:
    """What a message delivers, as the API shows it; None of an event of a schedule."""
    if found.kind is not Kind.MESSAGE:
        return None
    record = services().messages.find(found.id)
    return message_shown(record) if record else None


def _receiver(schedule: Schedule | None, message: View | None) -> str | None:
    """The isolation key of the URL that the run calls; None if the run calls no URL, or an unknown one."""
    if schedule is not None:
        return schedule.action.isolation_key if isinstance(schedule.action, HttpAction) else None
    shown = message or {}
    if "destination" in shown:
        return destination_key(whole_id(tenant(), str(shown["destination"])))
    return origin_of(str(shown["callback_url"])) if "callback_url" in shown else None


def steps(found: EventRecord) -> list[HistoryStep]:
    """How the event came to its first attempt, as far as its history tells, in the order of time."""
    times = [("expanded", found.created_at), ("due", found.run_time)]
    for state, name in _STEPS:
        line = next((each for each in found.status if each.get("status") == state and each.get("time")), None)
        if line:
            times.append((name, line["time"]))
    first = found.attempts[0] if found.attempts else {}
    if started := first.get("started_at"):
        times.append(("sent", started))
    if found.archived_at:
        times.append(("ended", found.archived_at))
    times.sort(key=lambda each: each[1])
    made, before = [], None
    for name, at in times:
        made.append(HistoryStep(name, at, (at - before).total_seconds() * 1000 if before else None))
        before = at
    return made


def _curl(found: EventRecord, request: View) -> str | None:
    """The request of this very event, by which its receiver knows it."""
    if "action" in request:
        return None
    headers = shlex.join(["-H", f"Idempotency-Key: {name_of(found.id)}"])
    return f"{curl(request)} {headers}"


def _customer_text(
    found: EventRecord, request: View, schedule: Schedule | None, now: datetime
) -> list[str] | None:
    """The lines that support may send to the customer, with times in the schedule's zone; None for a run that
    calls no server."""
    if "action" in request or found.corrupt:
        return None
    name = schedule.name if schedule else str(request.get("event_name") or "")
    zone = schedule.trigger.timezone if schedule else viewer_zone()
    return text_for_customer(found, request, name, zone, now)


#: The picture of the attempts, in units of the drawing; a bar is never too thin to be seen.
PICTURE = (300.0, 18.0)
LEAST_WIDTH = 2.0


class Try(NamedTuple):
    """An attempt in the picture of all of them."""

    attempt: Mapping[str, Any]
    x: float
    width: float
    look: str


def tries(found: EventRecord, now: datetime) -> list[Try]:
    """The attempts on one scale, from when the event was due to the end of the last one."""
    starts = [each["started_at"] for each in found.attempts if each.get("started_at")]
    if not starts:
        return [Try(each, 0.0, 0.0, _look(each)) for each in found.attempts]
    ends = [_end(each, now) for each in found.attempts if each.get("started_at")]
    begin, end = min(found.run_time, *starts), max(ends)
    scale = PICTURE[0] / max((end - begin).total_seconds(), 0.001)
    drawn = []
    for each in found.attempts:
        at = each.get("started_at") or begin
        width = max((_end(each, now) - at).total_seconds() * scale, LEAST_WIDTH)
        x = min((at - begin).total_seconds() * scale, PICTURE[0] - LEAST_WIDTH)
        drawn.append(Try(each, round(x, 1), round(min(width, PICTURE[0] - x), 1), _look(each)))
    return drawn


def _end(attempt: Mapping[str, Any], now: datetime) -> datetime:
    began: datetime = attempt.get("started_at") or now
    took = attempt.get("duration_ms")
    return began + timedelta(milliseconds=took) if isinstance(took, int | float) else began


def _look(attempt: Mapping[str, Any]) -> str:
    status = attempt.get("status_code")
    is_well = not attempt.get("error") and isinstance(status, int) and status < 400
    return "ok" if is_well else "failed"
