"""How the specification says that errors of /tasks have a form of their own."""

from typing import Any

from scheduler_app.api.tasks_facade.answers import PREFIX, status_shown

Node = dict[str, Any]

TASKS = PREFIX
_ERROR: Node = {"application/json": {"schema": {"$ref": "#/components/schemas/TaskError"}}}
_OFF = "There is no such task, or TASKS_API is not true"


def say_as_tasks(operation: Node) -> None:
    """Replaces the problems among an operation's answers."""
    answers = {
        status: answer for status, answer in operation["responses"].items() if str(status).startswith("2")
    }
    for status in sorted({status_shown(int(each)) for each in operation["responses"]} | {404}):
        if status >= 400:
            said = _OFF if status == 404 else "Refused: `error` says why"
            answers[str(status)] = {"description": said, "content": _ERROR}
    operation["responses"] = answers
