"""The row of Celery tasks in the registry of actions, and a Celery task as MongoDB keeps it: `{type, task,
broker, args, kwargs, event_kwarg, queue, priority, expires, headers: [[name, value]], wait}`; `args` and
`kwargs` are JSON texts.

Secret are the arguments and the headers' values.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from scheduler_app.actions.celery_task.validation import check_task
from scheduler_app.actions.kind import ActionKind, Document, Executor, joined_values
from scheduler_app.config import Settings
from scheduler_app.config.settings import BrokerTls
from scheduler_app.domain.action import COMMANDS
from scheduler_app.domain.celery_task_action import (
    CELERY_TASK,
    MAX_EXPIRES,
    MAX_PRIORITY,
    AllowedTasks,
    CeleryTaskAction,
)
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.stored_fields import Check, flag, optional, pairs, text, whole

if TYPE_CHECKING:
    from scheduler_app.actions.fields import ActionFields

_IN_THEIR_PLACE: Document = {"args": "[]", "kwargs": "{}", "headers": []}
#: The stored fields beside `type`, each with its check.
_FIELDS: Mapping[str, Check] = {
    "task": text,
    "broker": text,
    "args": text,
    "kwargs": text,
    "event_kwarg": partial(optional, text),
    "queue": partial(optional, text),
    "priority": partial(optional, partial(whole, most=MAX_PRIORITY)),
    "expires": partial(optional, partial(whole, most=MAX_EXPIRES)),
    "headers": pairs,
    "wait": flag,
}


class CeleryTaskKind(ActionKind[CeleryTaskAction]):
    """A task of another Celery application. Its isolation key is the name of its broker."""

    name = CELERY_TASK
    without_secrets: ClassVar[Document] = {
        "type": CELERY_TASK,
        **{name: f"$action.{name}" for name in _FIELDS},
        **_IN_THEIR_PLACE,
    }
    not_for_beats = tuple(_IN_THEIR_PLACE)
    in_their_place = _IN_THEIR_PLACE

    def fields(self) -> "ActionFields[CeleryTaskAction]":
        from scheduler_app.actions.celery_task.fields import CELERY_TASK_FIELDS

        return CELERY_TASK_FIELDS

    def to_document(self, action: CeleryTaskAction) -> Document:
        stored: Document = {"type": CELERY_TASK} | {name: getattr(action, name) for name in _FIELDS}
        return stored | {"headers": [[name, value] for name, value in action.headers]}

    def from_document(self, stored: Mapping[str, Any]) -> CeleryTaskAction:
        return CeleryTaskAction(
            **{name: check(stored.get(name), f"action.{name}") for name, check in _FIELDS.items()}
        )

    def split(self, stored: Document) -> tuple[Document, Document]:
        headers = stored["headers"]
        shown = stored | {"args": None, "kwargs": None, "headers": [[name, None] for name, _ in headers]}
        secrets = {name: stored[name] for name in ("args", "kwargs")}
        return shown, secrets | {"headers": [value for _, value in headers]}

    def join(self, stored: Document, secrets: Mapping[str, Any]) -> Document:
        joined = stored | {"headers": joined_values(stored, "headers", secrets)}
        for name in ("args", "kwargs"):
            if joined.get(name) is None:
                joined[name] = secrets.get(name)
        return joined

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
