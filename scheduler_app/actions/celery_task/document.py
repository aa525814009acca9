"""A Celery task as MongoDB keeps it: `{type, task, broker, args, kwargs, event_kwarg, queue, priority,
expires, headers: [[name, value]], wait}`; `args` and `kwargs` are JSON texts.

Secret are the arguments and the headers' values.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler_app.actions.kind import Document
from scheduler_app.domain.celery_task_action import CELERY_TASK, MAX_EXPIRES, MAX_PRIORITY, CeleryTaskAction
from scheduler_app.domain.field_types import Corrupt, flag, items, text, whole

#: Names in which beats and lists show an action: without what is secret.
WITHOUT_SECRETS: Document = {
    "type": CELERY_TASK,
    "task": "$action.task",
    "broker": "$action.broker",
    "args": "[]",
    "kwargs": "{}",
    "event_kwarg": "$action.event_kwarg",
    "queue": "$action.queue",
    "priority": "$action.priority",
    "expires": "$action.expires",
    "headers": [],
    "wait": "$action.wait",
}
NOT_FOR_BEATS = ("args", "kwargs", "headers")
IN_THEIR_PLACE: Document = {"args": "[]", "kwargs": "{}", "headers": []}


def to_document(action: CeleryTaskAction) -> Document:
    return {
        "type": CELERY_TASK,
        "task": action.task,
        "broker": action.broker,
        "args": action.args,
        "kwargs": action.kwargs,
        "event_kwarg": action.event_kwarg,
        "queue": action.queue,
        "priority": action.priority,
        "expires": action.expires,
        "headers": [[name, value] for name, value in action.headers],
        "wait": action.wait,
    }


def from_document(document: Mapping[str, Any]) -> CeleryTaskAction:
    """Raises Corrupt."""
    get = document.get
    return CeleryTaskAction(
        task=text(get("task"), "action.task"),
        broker=text(get("broker"), "action.broker"),
        args=text(get("args"), "action.args"),
        kwargs=text(get("kwargs"), "action.kwargs"),
        event_kwarg=_optional_text(get("event_kwarg"), "action.event_kwarg"),
        queue=_optional_text(get("queue"), "action.queue"),
        priority=_optional_whole(get("priority"), "action.priority", MAX_PRIORITY),
        expires=_optional_whole(get("expires"), "action.expires", MAX_EXPIRES),
        headers=tuple([_header(pair) for pair in items(get("headers"), "action.headers")]),
        wait=flag(get("wait"), "action.wait"),
    )


def split(document: Document) -> tuple[Document, Document]:
    headers = document["headers"]
    shown = document | {"args": None, "kwargs": None, "headers": [[name, None] for name, _ in headers]}
    secrets = {
        "args": document["args"],
        "kwargs": document["kwargs"],
        "headers": [value for _, value in headers],
    }
    return shown, secrets


def join(document: Document, secrets: Mapping[str, Any]) -> Document:
    """Raises Corrupt."""
    values: Iterator[Any] = iter(items(secrets.get("headers", []), "sealed: headers"))
    pairs = [
        items(pair, "an item of action.headers") for pair in items(document.get("headers"), "action.headers")
    ]
    joined = [[pair[0], next(values, None)] if len(pair) == 2 and pair[1] is None else pair for pair in pairs]
    if any(True for _ in values):
        raise Corrupt("action.headers and what is sealed of them do not fit together")
    arguments = {
        name: secrets.get(name) if document.get(name) is None else document[name]
        for name in ("args", "kwargs")
    }
    return document | arguments | {"headers": joined}


def _optional_text(value: Any, name: str) -> str | None:
    return None if value is None else text(value, name)


def _optional_whole(value: Any, name: str, most: int) -> int | None:
    return None if value is None else whole(value, name, most=most)


def _header(pair: Any) -> tuple[str, str]:
    if len(items(pair, "an item of action.headers")) != 2:
        raise Corrupt("an item of action.headers is not a pair of a name and a value")
    return text(pair[0], "a name in action.headers"), text(pair[1], "a value in action.headers")
