"""Executes Celery tasks: the seam's side. Each broker has a thread of its own, which may wait for it."""

from collections.abc import Callable, Mapping
from datetime import datetime

from scheduler_app.actions.celery_task.broker_thread import BrokerThread, TaskRequest
from scheduler_app.actions.kind import Outcome
from scheduler_app.actions.threaded import ThreadedExecutor, ToldOutcome
from scheduler_app.config.settings import PLAIN_TLS, BrokerTls
from scheduler_app.domain.celery_task_action import AllowedTasks, CeleryTaskAction
from scheduler_app.domain.event import Event
from scheduler_app.domain.schedule import Deliverable

#: How long `close` waits for a thread that is amid a call to its broker, in seconds.
CLOSE_SECONDS = 5.0


class CeleryTaskExecutor(ThreadedExecutor[TaskRequest]):
    """An `Executor` of tasks."""

    def __init__(
        self,
        brokers: Mapping[str, str],
        result_backends: Mapping[str, str],
        allowed: AllowedTasks,
        *,
        concurrency: int,
        ready: Callable[[], None],
        tls: BrokerTls = PLAIN_TLS,
    ) -> None:
        """URLs by name; `tls` is for those that are spoken to by TLS. `concurrency`: attempts of one broker.
        `ready` is called when there is a verdict to collect."""
        super().__init__(ready)
        self.concurrency = concurrency
        self._brokers = brokers
        self._result_backends = result_backends
        self._allowed = allowed
        self._tls = tls
        self._threads: dict[str, BrokerThread] = {}

    def start(self, event: Event, deliverable: Deliverable, now: datetime) -> None:
        action = deliverable.action
        if not isinstance(action, CeleryTaskAction):
            raise TypeError(f"an action of kind {action.kind} is no Celery task")
        asked = self._begin(
            event.id,
            deliverable.timeout_seconds,
            lambda serial, until: TaskRequest(serial, event, action, until),
        )
        if action.broker not in self._brokers:
            # And therefore not permanent: a worker with other settings may know it.
            self._tell(_not_named(asked, "CELERY_BROKERS"))
        elif refusal := self._allowed.refusal(action):
            reason = f"this worker refuses it: {refusal}"
            self._tell(ToldOutcome(asked.serial, event.id, Outcome.PERMANENT, reason))
        elif action.wait and action.broker not in self._result_backends:
            self._tell(_not_named(asked, "CELERY_RESULT_BACKENDS"))
        else:
            self._thread(action.broker).put(asked)

    def interrupt(self) -> None:
        first = self._forget()
        for thread in self._threads.values():
            thread.drop_before(first)

    def close(self) -> None:
        self.interrupt()
        for thread in self._threads.values():
            thread.stop()
        for thread in self._threads.values():
            thread.join(CLOSE_SECONDS)
        self._threads.clear()

    def _thread(self, broker: str) -> BrokerThread:
        thread = self._threads.get(broker)
        if thread is None:
            backend = self._result_backends.get(broker)
            thread = self._threads[broker] = BrokerThread(
                broker, self._brokers[broker], backend, self._tell, self._tls
            )
            thread.start()
        return thread

    def _why_overdue(self, asked: TaskRequest, seconds: float) -> str:
        thread = self._threads.get(asked.action.broker)
        if asked.action.wait and thread is not None and thread.knows_no_results:
            backend = f"the result backend of {asked.action.broker} does not answer"
            return f"{backend}, so that nothing is known of the task after {seconds:g} s"
        doing = "end" if asked.action.wait else "reach its broker"
        return f"the task did not {doing} within {seconds:g} s"


def _not_named(asked: TaskRequest, setting: str) -> ToldOutcome:
    reason = f"this worker's {setting} does not name {asked.action.broker}"
    return ToldOutcome(asked.serial, asked.event.id, Outcome.RETRY, reason)
