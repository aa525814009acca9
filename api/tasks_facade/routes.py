"""/tasks: the routes."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from flask import request

from scheduler_app.api import hop_limit, idempotency
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.problems import Problem
from scheduler_app.api.services import services
from scheduler_app.api.tasks_facade import task
from scheduler_app.api.tasks_facade.wire import (
    NewTask,
    ScheduledFilter,
    TaskChange,
    TaskDone,
    TaskError,
    TaskFilter,
    TaskOutput,
    TaskTime,
)
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire import examples
from scheduler_app.api.wire.field_types import Cursor
from scheduler_app.domain.command_patterns import AllowedCommands
from scheduler_app.domain.errors import InvalidField, NotFound
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store.paging import Position, Window

#: Pages of tasks that one request looks at for those that it asks for.
MAX_PAGES = 10

Headers = dict[str, str]
Tasks = tuple[list[View], Headers]

blueprint = ApiBlueprint(
    "tasks",
    __name__,
    url_prefix="/tasks",
    description="Commands, executed once; off unless TASKS_API is true",
)


@blueprint.before_request
def _refuse_where_off() -> None:
    if not services().settings.tasks_api:
        raise Problem(404, "/tasks is off, because it runs commands: start the API with TASKS_API=true")


@blueprint.route("", methods=["POST"])
@blueprint.arguments(NewTask, example=examples.TASK)
@blueprint.response(201, TaskDone)
@blueprint.alt_response(400, schema=TaskError, description="A field is not usable")
def create_task(given: Loaded) -> tuple[View, int, Headers]:
    """Create a task; with `scheduled_at` it is executed then"""
    made = services()
    with task.in_its_words():
        schedule = made.creation.create(
            task.new_draft(given, _allowed()),
            made.now(),
            tenant=tenant(),
            schedule_id=given["id"],
            request_seed=idempotency.request_seed(),
            hops=hop_limit.request_hops(),
        )
    return _done("Task created successfully", schedule.id), 201, {"Location": f"/tasks/{schedule.id}"}


@blueprint.route("", methods=["GET"])
@blueprint.arguments(TaskFilter, location="query")
@blueprint.response(200, TaskOutput(many=True))
def list_tasks(query: Loaded) -> Tasks:
    """List tasks, newest first"""
    wanted = query.get("status")
    return _found(query, lambda view: wanted in (None, view["status"]))


@blueprint.route("/scheduled", methods=["GET"])
@blueprint.arguments(ScheduledFilter, location="query")
@blueprint.response(200, TaskOutput(many=True))
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
@blueprint.response(200, TaskOutput)
def get_task(task_id: str) -> View:
    """Get a task"""
    return _shown([_task(task_id)])[0]


@blueprint.route("/<task:task_id>", methods=["PUT"])
@blueprint.arguments(TaskChange, example=examples.TASK_CHANGE)
@blueprint.response(200, TaskDone)
def update_task(given: Loaded, task_id: str) -> View:
    """Change the fields that are given"""
    if given.get("id", task_id) != task_id:
        raise InvalidField("id", f"is {given['id']}, but the path names another task: leave it out")
    return _edited("Task updated successfully", _task(task_id), given)


@blueprint.route("/<task:task_id>", methods=["DELETE"])
@blueprint.response(200, TaskDone)
def delete_task(task_id: str) -> View:
    """Delete a task; a run that has not begun is cancelled"""
    services().manager.delete(_task(task_id).id, services().now(), tenant=tenant())
    return _done("Task deleted successfully", task_id)


@blueprint.route("/<task:task_id>/execute", methods=["POST"])
@blueprint.response(200, TaskDone)
def execute_task(task_id: str) -> View:
    """Execute a task at once"""
    services().manager.trigger(
        _task(task_id).id,
        services().now(),
        tenant=tenant(),
        request_seed=idempotency.request_seed(),
        hops=hop_limit.request_hops(),
    )
    return _done("Task execution triggered", task_id)


@blueprint.route("/<task:task_id>/schedule", methods=["POST"])
@blueprint.arguments(TaskTime, example=examples.TASK_TIME)
@blueprint.response(200, TaskDone)
def schedule_task(given: Loaded, task_id: str) -> View:
    """Execute a task at a time to come; this displaces the time that it had"""
    return _edited("Task scheduled successfully", _task(task_id), given)


def _edited(said: str, old: Schedule, given: Loaded) -> View:
    with task.in_its_words():
        draft = task.changes(given, old, _allowed())
        services().manager.edit(
            old.id, draft, services().now(), tenant=tenant(), hops=hop_limit.request_hops()
        )
    return _done(said, old.id)


def _task(task_id: str) -> Schedule:
    """Raises NotFound also for a schedule that is no task."""
    try:
        schedule = services().manager.get(task_id, tenant=tenant())
    except NotFound:
        raise NotFound(f"there is no task {task_id}") from None
    if not task.is_task(schedule):
        raise NotFound(f"there is no task {task_id}")
    return schedule


def _found(query: Loaded, fits: Callable[[View], bool]) -> Tasks:
    """The tasks of a list that fit, and a `Link` to the rest."""
    limit: int = query["limit"]
    found: list[View] = []
    after: Position | None = query.get("cursor")
    for _ in range(MAX_PAGES):
        # No more than there is room for: what a page shows beyond it would be in no answer.
        page = services().store.schedules.page(
            Window(limit=limit - len(found), after=after),
            tenant=tenant(),
            tag=task.TAG,
            state=query.get("state"),
        )
        found += filter(fits, _shown([each for each in page.rows if task.is_task(each)]))
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
    states = services().store.newest_events.states(
        [each.id for each in schedules], task.TELLING, tenant=tenant()
    )
    return [task.shown(each, states.get(each.id, [])) for each in schedules]


def _done(said: str, task_id: str) -> View:
    return {"message": said, "task_id": task_id}


def _allowed() -> AllowedCommands:
    return AllowedCommands.parse(services().settings.allowed_commands)
