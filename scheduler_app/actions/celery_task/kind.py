"""The row of Celery tasks in the registry of actions, and a Celery task as MongoDB keeps it: `{type, task,
broker, args, kwargs, event_kwarg, queue, priority, expires, headers: [[name, value]], wait}`; `args` and
`kwargs` are JSON texts.

Secret are the arguments and the headers' values.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from scheduler_app.actions.celery_task.validation import check_task
from scheduler_app.actions.kind import ActionKind, Document, Executor
from scheduler_app.config import Settings
from scheduler_app.config.settings import BrokerTls
from scheduler_app.domain.celery_task_action import (
    CELERY_TASK,
    MAX_EXPIRES,
    MAX_PRIORITY,
    AllowedTasks,
    CeleryTaskAction,
)
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.queues import COMMANDS
from scheduler_app.domain.stored_fields import Corrupt, flag, items, text, whole

if TYPE_CHECKING:
    from scheduler_app.actions.fields import ActionFields

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


def document_of(action: CeleryTaskAction) -> Document:
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


def action_of(document: Mapping[str, Any]) -> CeleryTaskAction:
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


def split_secrets(document: Document) -> tuple[Document, Document]:
    headers = document["headers"]
    shown = document | {"args": None, "kwargs": None, "headers": [[name, None] for name, _ in headers]}
    secrets = {
        "args": document["args"],
        "kwargs": document["kwargs"],
        "headers": [value for _, value in headers],
    }
    return shown, secrets


def join_secrets(document: Document, secrets: Mapping[str, Any]) -> Document:
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


class CeleryTaskKind(ActionKind[CeleryTaskAction]):
    """A task of another Celery application. Its isolation key is the name of its broker."""

    name = CELERY_TASK
    without_secrets = WITHOUT_SECRETS
    not_for_beats = NOT_FOR_BEATS
    in_their_place = IN_THEIR_PLACE

    def fields(self) -> "ActionFields[CeleryTaskAction]":
        from scheduler_app.actions.celery_task.fields import CELERY_TASK_FIELDS

        return CELERY_TASK_FIELDS

    def to_document(self, action: CeleryTaskAction) -> Document:
        return document_of(action)

    def from_document(self, stored: Mapping[str, Any]) -> CeleryTaskAction:
        return action_of(stored)

    def split(self, stored: Document) -> tuple[Document, Document]:
        return split_secrets(stored)

    def join(self, stored: Document, secrets: Mapping[str, Any]) -> Document:
        return join_secrets(stored, secrets)

    def checker(self, settings: Settings) -> Callable[[CeleryTaskAction], None]:
        """What is returned raises InvalidField("action"). An API without CELERY_BROKERS and CELERY_TASKS
        leaves their names to the workers."""
        brokers, backends = dict(settings.celery_brokers), dict(settings.celery_result_backends)
        allowed = AllowedTasks.parse(settings.celery_tasks, settings.mongo_database)

        def check(action: CeleryTaskAction) -> None:
            check_task(action)
            if brokers and action.broker not in brokers:
                raise InvalidField("action", f"broker: must be one of CELERY_BROKERS: {', '.join(brokers)}")
            if brokers and action.wait and action.broker not in backends:
                raise InvalidField(
                    "action",
                    f"wait: CELERY_RESULT_BACKENDS names none for {action.broker}, so the end of the task"
                    " cannot be known; leave wait out, or ask the operator for one",
                )
            if (brokers or allowed.patterns) and (refusal := allowed.refusal(action)):
                raise InvalidField("action", refusal)

        return check

    def is_served(self, settings: Settings, queues: Collection[str]) -> bool:
        """By workers that know a broker: the others leave these events to them."""
        return COMMANDS not in queues and bool(settings.celery_brokers)

    def executor(self, settings: Settings, ready: Callable[[], None]) -> Executor:
        from scheduler_app.actions.celery_task.executor import CeleryTaskExecutor

        return CeleryTaskExecutor(
            dict(settings.celery_brokers),
            dict(settings.celery_result_backends),
            AllowedTasks.parse(settings.celery_tasks, settings.mongo_database),
            concurrency=settings.callback_origin_concurrency,
            ready=ready,
            # Our own certificate is for our own broker.
            tls=BrokerTls(settings.broker_ca_bundle),
        )
