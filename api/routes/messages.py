"""/api/v1/messages: one-off deliveries without a schedule."""

from marshmallow import ValidationError

from scheduler_app.api import idempotency, request_limits
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Headers, Loaded, View
from scheduler_app.api.problems import HttpProblem, problem_of
from scheduler_app.api.routes.bulk import bulk_results
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire import examples
from scheduler_app.api.wire import message as wire
from scheduler_app.api.wire.paging import listed, window
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.ids import WholeId, message_id_of, name_of
from scheduler_app.domain.message import Timing
from scheduler_app.domain.message_draft import MessageDraft
from scheduler_app.usecases.deeds.messages import Refusal, ScheduleMessageResult

blueprint = ApiBlueprint("messages", "/api/v1/messages", "One-off deliveries without a schedule")


@blueprint.route("", methods=["POST"], scope=KeyScope.WRITE)
@blueprint.arguments(wire.NewMessage, example=examples.MESSAGE)
@blueprint.response(201, wire.ScheduledMessage)
@blueprint.alt_response(
    200, schema=wire.ScheduledMessage, description="It was there already, with this content"
)
def schedule_message(given: MessageDraft) -> tuple[View, int, Headers]:
    """Schedule a message

    An `id` that is known already is answered with that message where the content is the same, and with a 409
    where it differs.
    """
    made = services().messages.schedule(
        tenant(),
        given,
        services().now(),
        request_seed=idempotency.request_seed(),
        hops=request_limits.request_hops(),
    )
    view = wire.message_shown(made.record)
    if made.signing_secret:
        view["signing_secret"] = idempotency.shown_once(made.signing_secret)
    return view, 201 if made.created else 200, {"Location": f"/api/v1/messages/{view['id']}"}


@blueprint.route("/bulk", methods=["POST"], scope=KeyScope.WRITE)
@blueprint.arguments(wire.MessageBulkInput, example=examples.MESSAGES)
@blueprint.response(200, wire.MessageBulkOutput)
def schedule_messages(given: Loaded) -> View:
    """Schedule up to 1,000 messages; each is taken or refused by itself"""
    items = given["messages"]
    drafts = [item for item in items if not isinstance(item, ValidationError)]
    now, seed, hops = services().now(), idempotency.request_seed(), request_limits.request_hops()
    made = iter(services().messages.schedule_many(tenant(), drafts, now, request_seed=seed, hops=hops))
    return bulk_results(
        [problem_of(item) if isinstance(item, ValidationError) else _outcome(next(made)) for item in items]
    )


def _outcome(made: ScheduleMessageResult | Refusal) -> View | HttpProblem:
    if not isinstance(made, ScheduleMessageResult):
        return problem_of(made)
    event = made.record.event
    result: View = {
        "status": 201 if made.created else 200,
        "id": message_id_of(event.id),
        "event_id": name_of(event.id),
        "scheduled_at": event.run_time,
    }
    if made.signing_secret:
        result["signing_secret"] = idempotency.shown_once(made.signing_secret)
    return result


@blueprint.route("", methods=["GET"])
@blueprint.arguments(wire.MessageFilter, location="query")
@blueprint.response(200, wire.MessagePage)
def list_messages(query: Loaded) -> View:
    """List messages, the soonest first"""
    asked = window(query)
    found = services().messages.page(
        tenant(),
        asked,
        event_name=query.get("event_name"),
        destination=query.get("destination"),
        states=query.get("state"),
    )
    return listed("messages", map(wire.message_shown, found.rows), asked, found)


@blueprint.route("/<message:message_id>", methods=["GET"])
@blueprint.response(200, wire.MessageOutput)
def get_message(message_id: WholeId) -> View:
    """Get a message with its history"""
    return wire.message_shown(services().messages.get(message_id))


@blueprint.route("/<message:message_id>/cancel", methods=["POST"], scope=KeyScope.TRIGGER)
@blueprint.response(200, wire.MessageOutput)
def cancel_message(message_id: WholeId) -> View:
    """Cancel a message that is neither in flight nor delivered; its body, header values and metadata are
    removed"""
    return _cancelled(message_id)


@blueprint.route("/<message:message_id>", methods=["DELETE"], scope=KeyScope.TRIGGER)
@blueprint.response(200, wire.MessageOutput)
def delete_message(message_id: WholeId) -> View:
    """Cancel a message, as POST …/cancel does"""
    return _cancelled(message_id)


def _cancelled(message_id: WholeId) -> View:
    return wire.message_shown(services().messages.cancel(message_id, services().now()))


@blueprint.route("/<message:message_id>/reschedule", methods=["POST"], scope=KeyScope.WRITE)
@blueprint.arguments(wire.RescheduleInput, example=examples.RESCHEDULE)
@blueprint.response(200, wire.MessageOutput)
def reschedule_message(given: Timing, message_id: WholeId) -> View:
    """Move a message that is neither in flight nor delivered to another time"""
    return wire.message_shown(services().messages.reschedule(message_id, given, services().now()))
