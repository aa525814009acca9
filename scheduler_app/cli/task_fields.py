"""Tasks: commands that run on demand or once, in the fields of a schedule. `/tasks` shows them too."""

from typing import Final

from scheduler_app.client import Json

#: As /tasks makes them: the person who executes a task sees it fail, and executes it again.
TAG: Final = "task"
_TASK: Final = {"max_retries": 0, "timeout_seconds": 300}
#: Fields of a task that say how it stood.
_SHOWN_ONLY: Final = ("status", "created_at", "updated_at")


def command_action(command: str, *, shell: bool = False) -> Json:
    """The action that runs a command; without a shell it is split into words as a shell would split it."""
    action: Json = {"type": "command", "command": command}
    return action | {"shell": True} if shell else action


def as_task(fields: Json) -> Json:
    """The fields of a schedule that runs only when it is executed by request."""
    tags = [*(fields.get("tags") or ()), TAG]
    return _TASK | fields | {"on_demand": True, "tags": list(dict.fromkeys(tags))}


def of_task(given: Json) -> Json:
    """The fields of a schedule, of those of a task as `GET /tasks/{id}` shows it."""
    fields = {name: value for name, value in given.items() if name not in _SHOWN_ONLY}
    fields["action"] = command_action(fields.pop("command"))
    if "description" in fields:
        fields["purpose"] = fields.pop("description")
    at = fields.pop("scheduled_at", None)
    made = as_task(fields)
    if at is not None:
        del made["on_demand"]
        made["run_at"] = at
    return made
