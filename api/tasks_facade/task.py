"""What a task is: a schedule, read and written in the words of /tasks."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from scheduler_app.api.converters import TASK_WORDS
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.config import MAX_TIMEOUT_SECONDS
from scheduler_app.domain.command_action import CommandAction
from scheduler_app.domain.command_patterns import AllowedCommands
from scheduler_app.domain.draft import Draft
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import LIVING, State
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store.schedules.corrupt import CorruptSchedule

TAG = "task"
#: The states of events that say how a task stands: a run that was withdrawn says nothing.
TELLING = LIVING | {State.COMPLETED, State.ERROR, State.EXPIRED}
_FIRST_YEAR = 1
#: Fields of a schedule by what a task calls them.
_OWN_WORDS = {"run_at": "scheduled_at", "action": "command", "purpose": "description"}


def is_task(schedule: Schedule | CorruptSchedule) -> bool:
    """Whether /tasks shows it; one whose document cannot be read is left to /api/v1/schedules."""
    return (
        isinstance(schedule, Schedule) and TAG in schedule.tags and isinstance(schedule.action, CommandAction)
    )


def new_draft(given: Loaded, allowed: AllowedCommands) -> Draft:
    """The schedule of a new task. It has one attempt: whoever executes it sees it fail, and executes it
    again. Raises InvalidField."""
    if given["id"] in TASK_WORDS:
        raise InvalidField("id", f"{given['id']} is a word of this API's paths; take another")
    at = time_given(given)
    return Draft(
        name=given["name"],
        purpose=given.get("description", ""),
        tags=(TAG,),
        trigger={"on_demand": True} if at is None else {"run_at": at},
        action=_command(given["command"], allowed),
        max_retries=0,
        timeout_seconds=float(MAX_TIMEOUT_SECONDS),
    )


def changes(given: Loaded, old: Schedule, allowed: AllowedCommands) -> Draft:
    """What a request changes of a task. Raises InvalidField."""
    fields: Loaded = {}
    if "name" in given:
        fields["name"] = given["name"]
    if "description" in given:
        fields["purpose"] = given["description"]
    if "command" in given and given["command"] != command_text(old):
        fields["action"] = _command(given["command"], allowed)
    at = time_given(given)
    # A task that is sent back as it was shown may have a time that has passed.
    if at is not None and at != old.trigger.instant:
        fields["trigger"] = {"run_at": at}
    return Draft(**fields)


def time_given(given: Loaded) -> datetime | None:
    """The time in a request; None also for the year 1, which a Go program writes for none."""
    at: datetime | None = given.get("scheduled_at")
    return None if at is None or at.year == _FIRST_YEAR else at


def command_text(schedule: Schedule) -> str:
    action = schedule.action
    if not isinstance(action, CommandAction):
        return ""
    return action.command[0] if action.shell else shlex.join(action.command)


def shown(schedule: Schedule, states: Sequence[State]) -> View:
    """The fields of TaskOutput; `states` are those of its newest events."""
    return {
        "id": schedule.id,
        "name": schedule.name,
        "description": schedule.purpose,
        "command": command_text(schedule),
        "status": status(schedule, states),
        "created_at": schedule.created_at,
        "updated_at": schedule.updated_at,
        "scheduled_at": schedule.trigger.instant,
    }


def status(schedule: Schedule, states: Sequence[State]) -> str:
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
def in_its_words() -> Iterator[None]:
    """Names the field of a task where an error names that of a schedule."""
    try:
        yield
    except InvalidField as error:
        raise InvalidField(_OWN_WORDS.get(error.field, error.field), error.message) from error
