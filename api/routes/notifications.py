"""/api/v1/notifications and /api/v1/silences: who is told of failures, and what is not told."""

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import caller, services, tenant
from scheduler_app.api.wire import examples
from scheduler_app.api.wire.notification import (
    NotificationEdited,
    NotificationInput,
    NotificationList,
    NotificationOutput,
    NotificationTested,
    SilenceEdited,
    SilenceInput,
    SilenceList,
    SilenceOutput,
    notification_shown,
    rule_of,
    silence_of,
    silence_shown,
)
from scheduler_app.api.wire.output_schema import MessageSchema
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.ids import WholeId, message_id_of

notifications_blueprint = ApiBlueprint(
    "notifications", "/api/v1/notifications", "Who is told of failures, and that they are over"
)


@notifications_blueprint.route("", methods=["GET"])
@notifications_blueprint.response(200, NotificationList)
def list_notifications() -> View:
    """List the notifications, by name"""
    return {"notifications": list(map(notification_shown, services().notification_rules.of(tenant())))}


@notifications_blueprint.route("/<name:name>", methods=["GET"])
@notifications_blueprint.response(200, NotificationOutput)
def get_notification(name: WholeId) -> View:
    """Get a notification"""
    return notification_shown(services().notification_rules.get(name))


@notifications_blueprint.route("/<name:name>", methods=["PUT"], scope=KeyScope.WRITE)
@notifications_blueprint.arguments(NotificationInput, example=examples.NOTIFICATION)
@notifications_blueprint.response(200, NotificationEdited)
@notifications_blueprint.alt_response(
    201, schema=NotificationEdited, description="There was none: it is created"
)
def put_notification(given: Loaded, name: WholeId) -> tuple[View, int]:
    """Set which failures are told, when, and to whom

    A failure is told once when it has lasted for `after_seconds`, however many schedules it touches, and once
    when it is over. One that is given in the same words stays as it is. The answer that generates the signing
    secret is the only one that shows it.
    """
    assembly, now = services(), services().now()
    rule, done, is_signed_anew = assembly.notification_rules.put(rule_of(name, given, now), now)
    view = notification_shown(rule) | {"result": done}
    if is_signed_anew and rule.signing is not None:
        view["signing_secret"] = rule.signing.secret
    return view, 201 if done == "created" else 200


@notifications_blueprint.route("/<name:name>", methods=["DELETE"], scope=KeyScope.WRITE)
@notifications_blueprint.response(200, MessageSchema)
def delete_notification(name: WholeId) -> View:
    """Delete a notification, with its secrets; what is on its way is still delivered"""
    services().notification_rules.delete(name, services().now())
    return {"message": "Notification deleted."}


@notifications_blueprint.route("/<name:name>/test", methods=["POST"], scope=KeyScope.TRIGGER)
@notifications_blueprint.response(202, NotificationTested)
def test_notification(name: WholeId) -> tuple[View, int]:
    """Send a message to each channel of a notification

    They are messages like any other: `GET /api/v1/messages/{id}` shows how they ended.
    """
    made = services().notification_rules.test(name, services().now())
    return {"message_ids": list(map(message_id_of, made))}, 202


silences_blueprint = ApiBlueprint("silences", "/api/v1/silences", "What is not told for a while")


@silences_blueprint.route("", methods=["GET"])
@silences_blueprint.response(200, SilenceList)
def list_silences() -> View:
    """List the silences, by name; one that is over is shown for a week"""
    return {"silences": list(map(silence_shown, services().silences.of(tenant())))}


@silences_blueprint.route("/<name:name>", methods=["GET"])
@silences_blueprint.response(200, SilenceOutput)
def get_silence(name: WholeId) -> View:
    """Get a silence"""
    return silence_shown(services().silences.get(name))


@silences_blueprint.route("/<name:name>", methods=["PUT"], scope=KeyScope.TRIGGER)
@silences_blueprint.arguments(SilenceInput, example=examples.SILENCE)
@silences_blueprint.response(200, SilenceEdited)
@silences_blueprint.alt_response(201, schema=SilenceEdited, description="There was none: it is created")
def put_silence(given: Loaded, name: WholeId) -> tuple[View, int]:
    """Set what is not told until an instant, and why

    What fails then and still fails at its end is told then. The end of what was told before is told all the
    same.
    """
    now = services().now()
    silence = silence_of(name, given, now, caller().name or "")
    done = services().silences.put(silence, now)
    return silence_shown(silence) | {"result": done}, 201 if done == "created" else 200


@silences_blueprint.route("/<name:name>", methods=["DELETE"], scope=KeyScope.TRIGGER)
@silences_blueprint.response(200, MessageSchema)
def delete_silence(name: WholeId) -> View:
    """Delete a silence; what still fails is told from now on"""
    services().silences.delete(name)
    return {"message": "Silence deleted."}
