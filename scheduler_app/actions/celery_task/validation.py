"""Checks a Celery task by itself, and by the brokers that this deployment names."""

import json
import re

from scheduler_app.domain.celery_task_action import (
    MAX_ARGUMENTS_BYTES,
    MAX_EXPIRES,
    MAX_HEADERS,
    MAX_HEADERS_BYTES,
    MAX_NAME,
    MAX_PRIORITY,
    CeleryTaskAction,
)
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.masking import MASK

_TASK = re.compile(r"[^\s\x00-\x1f\x7f]+\Z")
_QUEUE = re.compile(r"[A-Za-z0-9._:-]+\Z")
_HEADER = re.compile(r"[A-Za-z0-9_-]{1,100}\Z")
#: Headers by which Celery itself tells its workers what a message is (its message protocol, version 2), and
#: ours: a value given for one of them would make of the task something else.
_TAKEN = frozenset(
    [
        *("lang", "task", "id", "shadow", "eta", "expires", "group", "group_index", "retries", "timelimit"),
        *("root_id", "parent_id", "argsrepr", "kwargsrepr", "origin", "ignore_result", "compression"),
        *("replaced_task_nesting", "stamped_headers", "stamps"),
    ]
)
_OURS = "scheduler_"


def check_task(action: CeleryTaskAction) -> None:
    """Raises InvalidField("action") for what no broker can carry, or no worker would run."""
    _check_name("task", action.task, _TASK, "must be the name of a task, such as shop.tasks.bill")
    if action.queue is not None:
        _check_name("queue", action.queue, _QUEUE, "must be letters, digits and . _ : -")
    if action.event_kwarg is not None and not action.event_kwarg.isidentifier():
        _refuse("event_kwarg: must be the name of a keyword argument, such as event")
    _check_arguments(action)
    _check_headers(action)
    if action.priority is not None and not 0 <= action.priority <= MAX_PRIORITY:
        _refuse(f"priority: must be a whole number from 0 to {MAX_PRIORITY}")
    if action.expires is not None and not 1 <= action.expires <= MAX_EXPIRES:
        _refuse(f"expires: must be a whole number of seconds from 1 to {MAX_EXPIRES}")


def arguments_of(action: CeleryTaskAction) -> tuple[list[object], dict[str, object]]:
    """The arguments as Python values. Raises InvalidField("action")."""
    try:
        args, kwargs = json.loads(action.args), json.loads(action.kwargs)
    except (ValueError, RecursionError):
        raise InvalidField("action", "args and kwargs must be JSON") from None
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise InvalidField("action", "args must be a JSON list, and kwargs a JSON object")
    return args, kwargs


def _check_name(field: str, value: str, pattern: re.Pattern[str], remedy: str) -> None:
    if len(value) > MAX_NAME or not pattern.match(value):
        _refuse(f"{field}: {remedy}, up to {MAX_NAME} characters")


def _check_arguments(action: CeleryTaskAction) -> None:
    _, kwargs = arguments_of(action)
    if len(action.args.encode()) + len(action.kwargs.encode()) > MAX_ARGUMENTS_BYTES:
        _refuse(f"args and kwargs must not exceed {MAX_ARGUMENTS_BYTES // 1024} KiB together")
    if action.event_kwarg is not None and action.event_kwarg in kwargs:
        _refuse(f"event_kwarg: {action.event_kwarg} is one of kwargs already; take another name")


def _check_headers(action: CeleryTaskAction) -> None:
    if len(action.headers) > MAX_HEADERS:
        _refuse(f"headers must not be more than {MAX_HEADERS}")
    if sum(len(name) + len(value.encode()) for name, value in action.headers) > MAX_HEADERS_BYTES:
        _refuse(f"headers must not exceed {MAX_HEADERS_BYTES // 1024} KiB")
    for name, value in action.headers:
        if not _HEADER.match(name):
            _refuse("headers: a name must be 1 to 100 letters, digits, _ and -")
        if name in _TAKEN or name.startswith(_OURS):
            _refuse(f"headers: {name} has a meaning of its own; take another name")
        if value == MASK:
            _refuse(f"headers: {name} is a mask that stands for nothing")


def _refuse(message: str) -> None:
    raise InvalidField("action", message)
