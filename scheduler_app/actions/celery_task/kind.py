"""The row of Celery tasks in the registry of actions."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from scheduler_app.actions.celery_task import document
from scheduler_app.actions.celery_task.validation import check_task
from scheduler_app.actions.executor import Executor
from scheduler_app.actions.kind import ActionKind, Document
from scheduler_app.config import Settings
from scheduler_app.domain.broker_tls import BrokerTls
from scheduler_app.domain.celery_task_action import CELERY_TASK, CeleryTaskAction
from scheduler_app.domain.celery_task_patterns import AllowedTasks
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.queues import COMMANDS

if TYPE_CHECKING:
    from scheduler_app.actions.fields import ActionFields


class CeleryTaskKind(ActionKind[CeleryTaskAction]):
    """A task of another Celery application. Its isolation key is the name of its broker."""

    name = CELERY_TASK
    without_secrets = document.WITHOUT_SECRETS
    not_for_beats = document.NOT_FOR_BEATS
    in_their_place = document.IN_THEIR_PLACE

    def fields(self) -> "ActionFields[CeleryTaskAction]":
        from scheduler_app.actions.celery_task.fields import CELERY_TASK_FIELDS

        return CELERY_TASK_FIELDS

    def to_document(self, action: CeleryTaskAction) -> Document:
        return document.to_document(action)

    def from_document(self, stored: Mapping[str, Any]) -> CeleryTaskAction:
        return document.from_document(stored)

    def split(self, stored: Document) -> tuple[Document, Document]:
        return document.split(stored)

    def join(self, stored: Document, secrets: Mapping[str, Any]) -> Document:
        return document.join(stored, secrets)

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
