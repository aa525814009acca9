"""The promise of a schedule: what can be said of it before it is relied on."""

from flask import g

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import View
from scheduler_app.api.services import real_services
from scheduler_app.api.wire.field_types import Instant
from scheduler_app.api.wire.input_schema import InputSchema, WriteQuery
from scheduler_app.api.wire.output_schema import OmitNone, without_none
from scheduler_app.domain.schedule import Schedule
from scheduler_app.usecases.questions.promise import Promise

_MEANING = (
    "Answer `promise`, too: the next times, whether the receiver answers an OPTIONS request, whether its"
    " queue has workers, whether limits and blackouts leave room; also in a dry run"
)


def promise_flag() -> fields.Boolean:
    return fields.Boolean(_MEANING, truthy={"true"}, falsy={"false"}, load_default=False)


class CreationQuery(WriteQuery):
    """The parameters of `POST /api/v1/schedules`."""

    promise = promise_flag()


class PromiseQuery(InputSchema):
    """The parameter of a preview of a trigger that is not saved."""

    promise = promise_flag()


class ReceiverLookOutput(OmitNone):
    """What one OPTIONS request came to."""

    reachable = fields.Boolean("Whether it answered, whatever it said; absent where it was not asked")
    status_code = fields.Integer("What it answered")
    error = fields.String("Why there was no answer, or why it was not asked")


class PromiseOutput(OmitNone):
    """What can be said of a schedule now."""

    next_runs = fields.List(Instant(), "The next times, at most five", required=True)
    receiver = fields.Nested(ReceiverLookOutput, "Absent where no HTTP request is made, or none is known yet")
    queue = fields.String("The queue of its events", required=True)
    workers = fields.Integer("How many live workers serve that queue", required=True)
    owed_an_hour = fields.Integer(
        "The most that it owes in one of the next 24 hours; an estimate where it fires very often",
        required=True,
    )
    allowed_an_hour = fields.Integer("What the rate of its destination allows; absent without a rate")
    held_back = fields.Integer("How many of the next 24 hours fall into blackouts", required=True)
    problems = fields.List(fields.String(), "What is in the way, in sentences", required=True)


def is_promise_asked() -> bool:
    """Whether the request at hand, which writes or previews, asks for it."""
    return bool(g.write_query.get("promise"))


def promised(schedule: Schedule, *, asks_receiver: bool = True) -> View:
    """`promise`, as an answer has it."""
    # A dry run changes nothing, and neither does this.
    assembly = real_services()
    found = assembly.promises.of(schedule, assembly.now(), asks_receiver=asks_receiver)
    return {"promise": promise_shown(found)}


def promise_shown(found: Promise) -> View:
    look = found.receiver
    return without_none(
        {
            "next_runs": list(found.next_runs),
            "receiver": look
            and without_none(
                {"reachable": look.is_reachable, "status_code": look.status_code, "error": look.error}
            ),
            "queue": found.queue,
            "workers": found.workers,
            "owed_an_hour": found.owed_an_hour,
            "allowed_an_hour": found.allowed_an_hour,
            "held_back": found.held_back,
            "problems": list(found.problems),
        }
    )
