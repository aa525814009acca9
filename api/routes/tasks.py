"""/tasks: commands that are run once, by hand or at a time.

A facade: a task is a schedule with the tag `task` and a command, whose trigger is `on_demand` or `run_at`.
What happens to it is what happens to every schedule; its history is at /api/v1/schedules/{id}/events/history.
"""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from flask import request

from scheduler_app.api import idempotency, request_limits
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Headers, Loaded, View
from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire import examples
from scheduler_app.api.wire import tasks as wire
from scheduler_app.api.wire.field_types import TASK_WORDS, Cursor
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.command_action import AllowedCommands, CommandAction
from scheduler_app.domain.errors import InvalidField, NotFound
from scheduler_app.domain.ids import WholeId, name_of
from scheduler_app.domain.retry import MAX_TIMEOUT_SECONDS
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.domain.states import LIVING, State
from scheduler_app.store.paging import PageRequest, Position
from scheduler_app.store.schedules.documents import CorruptSchedule

TAG = "task"
#: The states of events that say how a task stands: a run that was withdrawn says nothing.
STATUS_STATES = LIVING | {State.COMPLETED, State.ERROR, State.EXPIRED}
_FIRST_YEAR = 1
#: Fields of a schedule by what a task calls them.
_TASK_NAMES = {"run_at": "scheduled_at", "action": "command", "purpose": "description"}


def is_task(schedule: Schedule | CorruptSchedule) -> bool:
    """Whether /tasks shows it; one whose document cannot be read is left to /api/v1/schedules."""
    return (
        isinstance(schedule, Schedule) and TAG in schedule.tags and isinstance(schedule.action, CommandAction)
    )


def new_task_draft(given: Loaded, allowed: AllowedCommands) -> ScheduleDraft:
    """The schedule of a new task. It has one attempt: whoever executes it sees it fail, and executes it
    again. Raises InvalidField."""
    if name_of(given["id"]) in TASK_WORDS:
        raise InvalidField("id", f"{name_of(given['id'])} is a word of this API's paths; take another")
    at = requested_time(given)
    return ScheduleDraft(
        name=given["name"],
        purpose=given.get("description", ""),
        tags=(TAG,),
        trigger={"on_demand": True} if at is None else {"run_at": at},
        action=_command(given["command"], allowed),
        max_retries=0,
        timeout_seconds=float(MAX_TIMEOUT_SECONDS),
    )


def task_changes(given: Loaded, old: Schedule, allowed: AllowedCommands) -> ScheduleDraft:
    """What a request changes of a task. Raises InvalidField."""
    fields: Loaded = {}
    if "name" in given:
        fields["name"] = given["name"]
    if "description" in given:
        fields["purpose"] = given["description"]
    if "command" in given and given["command"] != command_text(old):
        fields["action"] = _command(given["command"], allowed)
    at = requested_time(given)
    # A task that is sent back as it was shown may have a time that has passed.
    if at is not None and at != old.trigger.instant:
        fields["trigger"] = {"run_at": at}
    return ScheduleDraft(**fields)


def requested_time(given: Loaded) -> datetime | None:
    """The time in a request; None also for the year 1, which a Go program writes for none."""
    at: datetime | None = given.get("scheduled_at")
    return None if at is None or at.year == _FIRST_YEAR else at


def command_text(schedule: Schedule) -> str:
    action = schedule.action
    if not isinstance(action, CommandAction):
        return ""
    return action.command[0] if action.shell else shlex.join(action.command)


def task_shown(schedule: Schedule, states: Sequence[State]) -> View:
    """The fields of TaskOutput; `states` are those of its newest events."""
    return {
        "id": name_of(schedule.id),
        "name": schedule.name,
        "description": schedule.purpose,
        "command": command_text(schedule),
        "status": task_status(schedule, states),
        "created_at": schedule.created_at,
        "updated_at": schedule.updated_at,
        "scheduled_at": schedule.trigger.instant,
    }


def task_status(schedule: Schedule, states: Sequence[State]) -> str:
    """How a task stands: the newest events count, and the time that it waits for."""
    if State.RUNNING in states:
        return "running"
    if schedule.next_run_at is not None or not LIVING.isdisjoint(states):
        return "pending"
    if not states:
        return "created"
    return "completed" if states[0] is State.COMPLETED else "failed"


def _command(text: str, allowed: AllowedCommands) -> CommandAction:
    """A line for the shell where a pattern allows that, else its words without a shell. Raises
    InvalidField."""
    line = CommandAction((text,), shell=True)  # noqa: S604 - a value, which starts nothing
    if allowed.allow(line):
        return line
    try:
        return CommandAction(tuple(shlex.split(text)))
    except ValueError as error:
        raise InvalidField("command", f"cannot be split into words: {error}") from None


@contextmanager
def errors_in_task_fields() -> Iterator[None]:
    """Names the field of a task where an error names that of a schedule."""
    try:
        yield
    except InvalidField as error:
        raise InvalidField(_TASK_NAMES.get(error.field, error.field), error.message) from error


#: Pages of tasks that one request looks at for those that it asks for.
MAX_PAGES = 10

Tasks = tuple[list[View], Headers]

blueprint = ApiBlueprint("tasks", "/tasks", "Commands, executed once; off unless TASKS_API is true")


@blueprint.before_request
def _refuse_where_off() -> None:
    if not services().settings.tasks_api:
        raise HttpProblem(404, "/tasks is off, because it runs commands: start the API with TASKS_API=true")


@blueprint.route("", methods=["POST"], scope=KeyScope.WRITE)
@blueprint.arguments(wire.NewTask, example=examples.TASK)
@blueprint.response(201, wire.TaskDone)
@blueprint.alt_response(400, schema=wire.TaskError, description="A field is not usable")
def create_task(given: Loaded) -> tuple[View, int, Headers]:
    """Create a task; with `scheduled_at` it is executed then"""
    assembly = services()
    with errors_in_task_fields():
        schedule = assembly.creation.create(
            tenant(),
            new_task_draft(given, _allowed()),
            assembly.now(),
            schedule_id=given["id"],
            request_seed=idempotency.request_seed(),
            hops=request_limits.request_hops(),
        )
    view = _done("Task created successfully", schedule.id)
    return view, 201, {"Location": f"/tasks/{view['task_id']}"}


@blueprint.route("", methods=["GET"])
@blueprint.arguments(wire.TaskFilter, location="query")
@blueprint.response(200, wire.TaskOutput(many=True))
def list_tasks(query: Loaded) -> Tasks:
    """List tasks, newest first"""
    wanted = query.get("status")
    return _found(query, lambda view: wanted in (None, view["status"]))


@blueprint.route("/scheduled", methods=["GET"])
@blueprint.arguments(wire.ScheduledFilter, location="query")
@blueprint.response(200, wire.TaskOutput(many=True))
def list_scheduled_tasks(query: Loaded) -> Tasks:
    """List tasks that wait for their time, the soonest first"""
    since: datetime | None = query.pop("since", None)
    until: datetime | None = query.pop("until", None)

    def fits(view: View) -> bool:
        at: Any = view["scheduled_at"]
        if at is None or view["status"] != "pending":
            return False
        return (since is None or at >= since) and (until is None or at <= until)

    query["state"] = ScheduleState.ACTIVE.value
    views, headers = _found(query, fits)
    return sorted(views, key=_time), headers


@blueprint.route("/<task:task_id>", methods=["GET"])
@blueprint.response(200, wire.TaskOutput)
def get_task(task_id: WholeId) -> View:
    """Get a task"""
    return _shown([_task(task_id)])[0]


@blueprint.route("/<task:task_id>", methods=["PUT"], scope=KeyScope.WRITE)
@blueprint.arguments(wire.TaskChange, example=examples.TASK_CHANGE)
@blueprint.response(200, wire.TaskDone)
def update_task(given: Loaded, task_id: WholeId) -> View:
    """Change the fields that are given"""
    if given.get("id", task_id) != task_id:
        raise InvalidField("id", f"is {name_of(given['id'])}, but the path names another task: leave it out")
    return _edited("Task updated successfully", _task(task_id), given)


@blueprint.route("/<task:task_id>", methods=["DELETE"], scope=KeyScope.WRITE)
@blueprint.response(200, wire.TaskDone)
def delete_task(task_id: WholeId) -> View:
    """Delete a task; a run that has not begun is cancelled"""
    services().manager.delete(_task(task_id).id, services().now())
    return _done("Task deleted successfully", task_id)


@blueprint.route("/<task:task_id>/execute", methods=["POST"], scope=KeyScope.TRIGGER)
@blueprint.response(200, wire.TaskDone)
def execute_task(task_id: WholeId) -> View:
    """Execute a task at once"""
    services().manager.trigger(
        _task(task_id).id,
        services().now(),
        request_seed=idempotency.request_seed(),
        hops=request_limits.request_hops(),
    )
    return _done("Task execution triggered", task_id)


@blueprint.route("/<task:task_id>/schedule", methods=["POST"], scope=KeyScope.WRITE)
@blueprint.arguments(wire.TaskTime, example=examples.TASK_TIME)
@blueprint.response(200, wire.TaskDone)
def schedule_task(given: Loaded, task_id: WholeId) -> View:
    """Execute a task at a time to come; this displaces the time that it had"""
    return _edited("Task scheduled successfully", _task(task_id), given)


def _edited(said: str, old: Schedule, given: Loaded) -> View:
    with errors_in_task_fields():
        draft = task_changes(given, old, _allowed())
        services().manager.edit(old.id, draft, services().now(), hops=request_limits.request_hops())
    return _done(said, old.id)


def _task(task_id: WholeId) -> Schedule:
    """Raises NotFound also for a schedule that is no task."""
    try:
        schedule = services().manager.get(task_id)
    except NotFound:
        raise NotFound(f"there is no task {name_of(task_id)}") from None
    if not is_task(schedule):
        raise NotFound(f"there is no task {name_of(task_id)}")
    return schedule


def _found(query: Loaded, fits: Callable[[View], bool]) -> Tasks:
    """The tasks of a list that fit, and a `Link` to the rest."""
    limit: int = query["limit"]
    found: list[View] = []
    after: Position | None = query.get("cursor")
    for _ in range(MAX_PAGES):
        # No more than there is room for: what a page shows beyond it would be in no answer.
        page = services().schedules.page(
            tenant(),
            PageRequest(limit=limit - len(found), after=after),
            tag=TAG,
            state=query.get("state"),
        )
        found += filter(fits, _shown([each for each in page.rows if is_task(each)]))
        after = page.next
        if after is None or len(found) == limit:
            break
    return found, {} if after is None else {"Link": _next(after)}


def _time(view: View) -> Any:
    return view["scheduled_at"]


def _next(after: Position) -> str:
    """The address of a list's next part, as a header has it (RFC 8288)."""
    cursor = Cursor().serialize("cursor", {"cursor": after})
    return f'<{request.path}?{urlencode(request.args.to_dict() | {"cursor": cursor})}>; rel="next"'


def _shown(schedules: Sequence[Any]) -> list[View]:
    states = services().newest_events.states([each.id for each in schedules], STATUS_STATES)
    return [task_shown(each, states.get(each.id, [])) for each in schedules]


def _done(said: str, task_id: str) -> View:
    return {"message": said, "task_id": name_of(task_id)}


def _allowed() -> AllowedCommands:
    return AllowedCommands.parse(services().settings.allowed_commands)
