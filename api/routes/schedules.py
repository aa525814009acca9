"""/api/v1/schedules: one schedule, their list, and the events of one."""

from flask import Response

from scheduler_app.api import hop_limit, idempotency
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.preconditions import etag, put_conditions, unchanged, version_wanted
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire import (
    Created,
    Edited,
    EventPage,
    HistoryFilter,
    Message,
    NewSchedule,
    Paging,
    PauseInput,
    PutQuery,
    ScheduleFilter,
    ScheduleInput,
    ScheduleOutput,
    SchedulePage,
    Triggered,
    check_same_id,
    examples,
    listed,
    window,
)
from scheduler_app.api.wire.presenters import event_shown, shown
from scheduler_app.domain.draft import Draft
from scheduler_app.domain.errors import NotFound
from scheduler_app.domain.event import FINAL, LIVING, State
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store.events.lists import EVERYTHING, Narrowing
from scheduler_app.usecases.upsert import put

blueprint = ApiBlueprint(
    "schedules", __name__, url_prefix="/api/v1/schedules", description="Rules, callbacks, policies"
)

Headers = dict[str, str]
Tagged = tuple[View, Headers]


@blueprint.route("", methods=["POST"])
@blueprint.arguments(NewSchedule, example=examples.SCHEDULE)
@blueprint.response(201, Created)
def create_schedule(given: tuple[str | None, Draft]) -> Tagged:
    """Create a schedule"""
    made, now = services(), services().now()
    schedule_id, draft = given
    schedule = made.creation.create(
        draft,
        now,
        tenant=tenant(),
        schedule_id=schedule_id,
        request_seed=idempotency.request_seed(),
        hops=hop_limit.request_hops(),
    )
    view, headers = _tagged(schedule)
    if schedule.signing:
        view["signing_secret"] = idempotency.shown_once(schedule.signing.secret)
    return view, headers | {"Location": f"/api/v1/schedules/{schedule.id}"}


@blueprint.route("", methods=["GET"])
@blueprint.arguments(ScheduleFilter, location="query")
@blueprint.response(200, SchedulePage)
def list_schedules(query: Loaded) -> View:
    """List schedules, newest first"""
    asked, now = window(query), services().now()
    found = services().store.schedules.page(asked, tenant=tenant(), **query)
    return listed("schedules", (shown(schedule, now) for schedule in found.rows), asked, found)


@blueprint.route("/<schedule:schedule_id>", methods=["GET"])
@blueprint.response(200, ScheduleOutput)
def get_schedule(schedule_id: str) -> Tagged | Response:
    """Get a schedule"""
    view, headers = _tagged(services().manager.get(schedule_id, tenant=tenant()))
    return Response(status=304, headers=headers) if unchanged(headers["ETag"]) else (view, headers)


@blueprint.route("/<schedule:schedule_id>", methods=["PUT"], query=PutQuery)
@blueprint.arguments(ScheduleInput, example=examples.CHANGE)
@blueprint.response(200, Edited)
@blueprint.alt_response(201, schema=Edited, description="There was none: it is created")
def update_schedule(given: tuple[str | None, Draft], schedule_id: str) -> tuple[View, int, Headers]:
    """Change a schedule, or create it where there is none

    The fields given are set, the others stay. A new schedule needs `name`, a trigger, and `callback_url` or
    `destination`, and has the defaults of the other fields. `If-None-Match: *` or `?if-absent` only creates,
    `If-Match` only changes; where that is not possible the answer is a 412.
    """
    body_id, draft = given
    check_same_id(body_id, schedule_id)
    now, made = services().now(), services()
    conditions = put_conditions(schedule_id)
    schedule, created = put(
        made.creation,
        made.manager,
        schedule_id,
        draft,
        now,
        tenant=tenant(),
        conditions=conditions,
        hops=hop_limit.request_hops(),
    )
    view, headers = _tagged(schedule)
    if schedule.signing and schedule.signing.since == now and draft.signing is True:
        view["signing_secret"] = idempotency.shown_once(schedule.signing.secret)
    if created:
        view |= {"message": "Schedule created successfully.", "result": "created"}
        return view, 201, headers | {"Location": f"/api/v1/schedules/{schedule.id}"}
    result = "changed" if schedule.updated_at == now else "unchanged"
    return view | {"message": "Schedule updated successfully.", "result": result}, 200, headers


@blueprint.route("/<schedule:schedule_id>", methods=["DELETE"])
@blueprint.response(200, Message)
def delete_schedule(schedule_id: str) -> View:
    """Delete a schedule; its unsent events are cancelled, its history stays"""
    services().manager.delete(
        schedule_id, services().now(), tenant=tenant(), version=version_wanted(schedule_id)
    )
    return {"message": "Schedule and associated events deleted."}


@blueprint.route("/<schedule:schedule_id>/pause", methods=["POST"])
@blueprint.arguments(PauseInput, required=False, example=examples.PAUSE)
@blueprint.response(200, ScheduleOutput)
def pause_schedule(given: Loaded, schedule_id: str) -> Tagged:
    """Pause: nothing after this instant is sent, or nothing before `until`

    Of a schedule that is paused already, the end is set anew: without `until` it stays paused until it is
    resumed.
    """
    now, version = services().now(), version_wanted(schedule_id)
    return _tagged(services().manager.pause(schedule_id, now, tenant=tenant(), version=version, **given))


@blueprint.route("/<schedule:schedule_id>/resume", methods=["POST"])
@blueprint.response(200, ScheduleOutput)
def resume_schedule(schedule_id: str) -> Tagged:
    """Resume a paused schedule, or one in error whose document was repaired"""
    now, version = services().now(), version_wanted(schedule_id)
    return _tagged(
        services().manager.resume(
            schedule_id, now, tenant=tenant(), version=version, hops=hop_limit.request_hops()
        )
    )


@blueprint.route("/<schedule:schedule_id>/trigger", methods=["POST"])
@blueprint.response(202, Triggered)
def trigger_schedule(schedule_id: str) -> View:
    """Call the callback at once, whatever the trigger and the state"""
    event = services().manager.trigger(
        schedule_id,
        services().now(),
        tenant=tenant(),
        request_seed=idempotency.request_seed(),
        hops=hop_limit.request_hops(),
    )
    return {"event_id": event.id, "message": "Event triggered."}


@blueprint.route("/<schedule:schedule_id>/events/pending", methods=["GET"])
@blueprint.arguments(Paging, location="query")
@blueprint.response(200, EventPage)
def list_pending_events(query: Loaded, schedule_id: str) -> View:
    """List the events to come, the next one first"""
    return _events(schedule_id, LIVING, query, soonest_first=True)


@blueprint.route("/<schedule:schedule_id>/events/history", methods=["GET"])
@blueprint.arguments(HistoryFilter, location="query")
@blueprint.response(200, EventPage)
def list_archived_events(query: Loaded, schedule_id: str) -> View:
    """List the finished events, newest first; also those of a deleted schedule"""
    return _events(schedule_id, FINAL, query, narrowing=Narrowing(early_withdrawals="include" in query))


def _tagged(schedule: Schedule) -> Tagged:
    view = shown(schedule, services().now())
    return view, {"ETag": etag(view)}


def _events(
    schedule_id: str,
    states: frozenset[State],
    query: Loaded,
    *,
    narrowing: Narrowing = EVERYTHING,
    soonest_first: bool = False,
) -> View:
    store, asked = services().store, window(query)
    found = store.event_lists.page(
        asked,
        tenant=tenant(),
        schedule_id=schedule_id,
        states=states,
        narrowing=narrowing,
        soonest_first=soonest_first,
    )
    if not found.rows and not store.schedules.exists(schedule_id, tenant=tenant()):
        raise NotFound(f"there is no schedule {schedule_id}")
    return listed("events", map(event_shown, found.rows), asked, found)
