"""/api/v1/schedules: one schedule, their list, the events, edits and signing secret of one."""

from datetime import timedelta

from flask import Response

from scheduler_app.api import idempotency, request_limits
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.edits import etag, put_conditions, revert, unchanged, version_wanted
from scheduler_app.api.json_types import Headers, Loaded, Tagged, View
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire import examples
from scheduler_app.api.wire import schedule as wire
from scheduler_app.api.wire.bulk import PauseInput
from scheduler_app.api.wire.edit_log import EditLogPage, EditLogQuery, logged_edit_shown
from scheduler_app.api.wire.event import EventPage, HistoryFilter, Triggered
from scheduler_app.api.wire.output_schema import MessageSchema
from scheduler_app.api.wire.paging import Paging, listed, window
from scheduler_app.api.wire.promise import CreationQuery, is_promise_asked, promised
from scheduler_app.api.wire.schedule_list import ScheduleFilter, SchedulePage, listed_schedules
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.ids import WholeId, name_of
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.domain.states import FINAL, LIVING, State
from scheduler_app.store.events.lists import NO_FILTER, EventListFilter
from scheduler_app.usecases.deeds.creation import put_schedule

schedules_blueprint = ApiBlueprint("schedules", "/api/v1/schedules", "Rules, callbacks, policies")


@schedules_blueprint.route("", methods=["POST"], scope=KeyScope.WRITE, query=CreationQuery)
@schedules_blueprint.arguments(wire.NewSchedule, example=examples.SCHEDULE)
@schedules_blueprint.response(201, wire.Created)
def create_schedule(given: tuple[WholeId | None, ScheduleDraft]) -> Tagged:
    """Create a schedule"""
    assembly, now = services(), services().now()
    schedule_id, draft = given
    schedule = assembly.creation.create(
        tenant(),
        draft,
        now,
        schedule_id=schedule_id,
        request_seed=idempotency.request_seed(),
        hops=request_limits.request_hops(),
    )
    view, headers = _tagged(schedule)
    if schedule.signing:
        view["signing_secret"] = idempotency.shown_once(schedule.signing.secret)
    if is_promise_asked():
        view |= promised(schedule)
    return view, headers | {"Location": f"/api/v1/schedules/{name_of(schedule.id)}"}


@schedules_blueprint.route("", methods=["GET"])
@schedules_blueprint.arguments(ScheduleFilter, location="query")
@schedules_blueprint.response(200, SchedulePage)
def list_schedules(query: Loaded) -> View:
    """List schedules, newest first

    With `outcomes` each has its last events, and the kill switch that stops it.
    """
    asked, now, outcomes = window(query), services().now(), query.pop("outcomes", None)
    schedules = services().schedules
    found = schedules.page(tenant(), asked, **query)
    if outcomes is None:
        return listed("schedules", listed_schedules(found.rows, now), asked, found)
    ran = schedules.last_outcomes(found.rows, now, most=outcomes)
    rows = listed_schedules(found.rows, now, ran, schedules.held_by(found.rows))
    return listed("schedules", rows, asked, found)


@schedules_blueprint.route("/<schedule:schedule_id>", methods=["GET"])
@schedules_blueprint.response(200, wire.ScheduleOutput)
def get_schedule(schedule_id: WholeId) -> Tagged | Response:
    """Get a schedule"""
    view, headers = _tagged(services().manager.get(schedule_id))
    return Response(status=304, headers=headers) if unchanged(headers["ETag"]) else (view, headers)


@schedules_blueprint.route(
    "/<schedule:schedule_id>", methods=["PUT"], scope=KeyScope.WRITE, query=wire.PutQuery
)
@schedules_blueprint.arguments(wire.ScheduleInput, example=examples.CHANGE)
@schedules_blueprint.response(200, wire.Edited)
@schedules_blueprint.alt_response(201, schema=wire.Edited, description="There was none: it is created")
def update_schedule(
    given: tuple[WholeId | None, ScheduleDraft], schedule_id: WholeId
) -> tuple[View, int, Headers]:
    """Change a schedule, or create it where there is none

    The fields given are set, the others stay. A new schedule needs `name`, a trigger, and `callback_url` or
    `destination`, and has the defaults of the other fields. `If-None-Match: *` or `?if-absent` only creates,
    `If-Match` only changes; where that is not possible the answer is a 412.
    """
    body_id, draft = given
    wire.check_same_id(body_id, schedule_id)
    now, assembly = services().now(), services()
    conditions = put_conditions(schedule_id)
    schedule, created = put_schedule(
        assembly.creation,
        assembly.manager,
        schedule_id,
        draft,
        now,
        conditions=conditions,
        hops=request_limits.request_hops(),
    )
    view, headers = _tagged(schedule)
    if schedule.signing and schedule.signing.since == now and draft.signing is True:
        view["signing_secret"] = idempotency.shown_once(schedule.signing.secret)
    if is_promise_asked():
        view |= promised(schedule)
    if created:
        view |= {"message": "Schedule created successfully.", "result": "created"}
        return view, 201, headers | {"Location": f"/api/v1/schedules/{name_of(schedule.id)}"}
    result = "changed" if schedule.updated_at == now else "unchanged"
    return view | {"message": "Schedule updated successfully.", "result": result}, 200, headers


@schedules_blueprint.route("/<schedule:schedule_id>", methods=["DELETE"], scope=KeyScope.WRITE)
@schedules_blueprint.response(200, MessageSchema)
def delete_schedule(schedule_id: WholeId) -> View:
    """Delete a schedule; its unsent events are cancelled, its history stays"""
    services().manager.delete(schedule_id, services().now(), version=version_wanted(schedule_id))
    return {"message": "Schedule and associated events deleted."}


@schedules_blueprint.route("/<schedule:schedule_id>/pause", methods=["POST"], scope=KeyScope.TRIGGER)
@schedules_blueprint.arguments(PauseInput, required=False, example=examples.PAUSE)
@schedules_blueprint.response(200, wire.ScheduleOutput)
def pause_schedule(given: Loaded, schedule_id: WholeId) -> Tagged:
    """Pause: nothing after this instant is sent, or nothing before `until`

    Of a schedule that is paused already, the end is set anew: without `until` it stays paused until it is
    resumed.
    """
    now, version = services().now(), version_wanted(schedule_id)
    return _tagged(services().manager.pause(schedule_id, now, version=version, **given))


@schedules_blueprint.route("/<schedule:schedule_id>/resume", methods=["POST"], scope=KeyScope.TRIGGER)
@schedules_blueprint.response(200, wire.ScheduleOutput)
def resume_schedule(schedule_id: WholeId) -> Tagged:
    """Resume a paused schedule, or one in error whose document was repaired"""
    now, version = services().now(), version_wanted(schedule_id)
    return _tagged(
        services().manager.resume(schedule_id, now, version=version, hops=request_limits.request_hops())
    )


@schedules_blueprint.route("/<schedule:schedule_id>/trigger", methods=["POST"], scope=KeyScope.TRIGGER)
@schedules_blueprint.response(202, Triggered)
def trigger_schedule(schedule_id: WholeId) -> View:
    """Call the callback at once, whatever the trigger and the state"""
    event = services().manager.trigger(
        schedule_id,
        services().now(),
        request_seed=idempotency.request_seed(),
        hops=request_limits.request_hops(),
    )
    return {"event_id": name_of(event.id), "message": "Event triggered."}


@schedules_blueprint.route("/<schedule:schedule_id>/events/pending", methods=["GET"])
@schedules_blueprint.arguments(Paging, location="query")
@schedules_blueprint.response(200, EventPage)
def list_pending_events(query: Loaded, schedule_id: WholeId) -> View:
    """List the events to come, the next one first"""
    return _events(schedule_id, LIVING, query, soonest_first=True)


@schedules_blueprint.route("/<schedule:schedule_id>/events/history", methods=["GET"])
@schedules_blueprint.arguments(HistoryFilter, location="query")
@schedules_blueprint.response(200, EventPage)
def list_archived_events(query: Loaded, schedule_id: WholeId) -> View:
    """List the finished events, newest first; also those of a deleted schedule"""
    return _events(schedule_id, FINAL, query, narrowing=EventListFilter(early_withdrawals="include" in query))


def _tagged(schedule: Schedule) -> Tagged:
    view = wire.schedule_shown(schedule, services().now())
    return view, {"ETag": etag(view)}


def _events(
    schedule_id: WholeId,
    states: frozenset[State],
    query: Loaded,
    *,
    narrowing: EventListFilter = NO_FILTER,
    soonest_first: bool = False,
) -> View:
    assembly, asked = services(), window(query)
    found = assembly.event_lists.page(
        tenant(),
        asked,
        schedule_id=schedule_id,
        states=states,
        narrowing=narrowing,
        soonest_first=soonest_first,
    )
    if not found.rows:
        assembly.schedules.check_known(schedule_id)
    return listed("events", map(wire.event_shown, found.rows), asked, found)


edits_blueprint = ApiBlueprint("edits_log", "/api/v1/schedules", "Who changed it?")


@edits_blueprint.route("/<schedule:schedule_id>/edits", methods=["GET"])
@edits_blueprint.arguments(Paging, location="query")
@edits_blueprint.response(200, wire.EditPage)
def list_edits(query: Loaded, schedule_id: WholeId) -> View:
    """List who edited a schedule, when, and what; also a deleted one"""
    assembly, asked = services(), window(query)
    found = assembly.audit.edits(asked, schedule_id)
    if not found.rows:
        assembly.schedules.check_known(schedule_id)
    edits = list(map(wire.edit_shown, found.rows))
    return listed("edits", edits, asked, found)


@edits_blueprint.route(
    "/<schedule:schedule_id>/edits/<edit_id>/revert", methods=["POST"], scope=KeyScope.WRITE
)
@edits_blueprint.response(200, wire.ScheduleOutput)
def revert_edit(schedule_id: WholeId, edit_id: str) -> Tagged:
    """Take an edit back: its fields become what they were; secrets stay as they are"""
    view = wire.schedule_shown(revert(schedule_id, edit_id, version_wanted(schedule_id)), services().now())
    return view, {"ETag": etag(view)}


edit_log_blueprint = ApiBlueprint("edit_log", "/api/v1/edits", "Who changed what?")


@edit_log_blueprint.route("", methods=["GET"])
@edit_log_blueprint.arguments(EditLogQuery, location="query")
@edit_log_blueprint.response(200, EditLogPage)
def list_all_edits(query: Loaded) -> View:
    """List who edited which schedule, when, and what, newest first"""
    asked, by = window(query), query.get("by")
    found = services().audit.edits_of_all(asked, tenant(), by=by)
    return listed("edits", map(logged_edit_shown, found.rows), asked, found)


signing_blueprint = ApiBlueprint("signing", "/api/v1/schedules", "Standard Webhooks")


@signing_blueprint.route("/<schedule:schedule_id>/signing-secret", methods=["POST"], scope=KeyScope.WRITE)
@signing_blueprint.arguments(wire.SigningInput, required=False, example=examples.ROTATION)
@signing_blueprint.response(201, wire.SigningOutput)
def make_signing_secret(given: Loaded, schedule_id: WholeId) -> View:
    """Generate a signing secret, or replace the one in force

    The replaced secret signs beside the new one for `overlap_seconds`, so that a receiver can switch to the
    new one without refusing a callback.
    """
    now, version = services().now(), version_wanted(schedule_id)
    overlap = timedelta(seconds=given["overlap_seconds"])
    signing = services().manager.sign(schedule_id, now, overlap=overlap, version=version)
    return {
        "signing_secret": idempotency.shown_once(signing.secret),
        "signing_since": signing.since,
        "signing_overlap_until": signing.overlap_until(now),
    }


@signing_blueprint.route("/<schedule:schedule_id>/signing-secret", methods=["DELETE"], scope=KeyScope.WRITE)
@signing_blueprint.response(200, MessageSchema)
def remove_signing_secret(schedule_id: WholeId) -> View:
    """Stop signing; every secret of the schedule is deleted"""
    version = version_wanted(schedule_id)
    services().manager.unsign(schedule_id, services().now(), version=version)
    return {"message": "Callbacks are no longer signed."}
