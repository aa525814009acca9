"""Executes Celery tasks: the seam's side. Each broker has a thread of its own, which may wait for it."""

import heapq
import itertools
import queue
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from scheduler_app.actions.celery_task.broker_thread import BrokerThread, TaskOutcome, TaskRequest
from scheduler_app.actions.kind import Outcome, Verdict
from scheduler_app.clock import monotonic
from scheduler_app.config.settings import PLAIN_TLS, BrokerTls
from scheduler_app.domain.celery_task_action import AllowedTasks, CeleryTaskAction
from scheduler_app.domain.event import Event
from scheduler_app.domain.schedule import Deliverable

#: How long `close` waits for a thread that is amid a call to its broker, in seconds.
CLOSE_SECONDS = 5.0


class CeleryTaskExecutor:
    """An `Executor` of tasks. The courier's thread owns the attempts, and ends them at their time whatever
    the broker does."""

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
        self.concurrency = concurrency
        self._brokers = brokers
        self._result_backends = result_backends
        self._allowed = allowed
        self._ready = ready
        self._tls = tls
        self._told: queue.SimpleQueue[TaskOutcome | None] = queue.SimpleQueue()
        self._threads: dict[str, BrokerThread] = {}
        self._serials = itertools.count()
        self._pending: dict[str, tuple[TaskRequest, float]] = {}
        """By event, with the monotonic time at which the attempt began."""
        self._ends: list[tuple[float, int, str]] = []

    def start(self, event: Event, deliverable: Deliverable, now: datetime) -> None:
        action = deliverable.action
        if not isinstance(action, CeleryTaskAction):
            raise TypeError(f"an action of kind {action.kind} is no Celery task")
        began = monotonic()
        asked = TaskRequest(next(self._serials), event, action, began + deliverable.timeout_seconds)
        self._pending[event.id] = asked, began
        heapq.heappush(self._ends, (asked.until, asked.serial, event.id))
        if action.broker not in self._brokers:
            # And therefore not permanent: a worker with other settings may know it.
            self._tell(_not_named(asked, "CELERY_BROKERS"))
        elif refusal := self._allowed.refusal(action):
            reason = f"this worker refuses it: {refusal}"
            self._tell(TaskOutcome(asked.serial, event.id, Outcome.PERMANENT, reason))
        elif action.wait and action.broker not in self._result_backends:
            self._tell(_not_named(asked, "CELERY_RESULT_BACKENDS"))
        else:
            self._thread(action.broker).put(asked)

    def wait(self, timeout: float) -> Sequence[Verdict]:
        found = self._overdue()
        until = monotonic() + timeout
        while not found:
            ends = min(until, self._ends[0][0]) if self._ends else until
            left = ends - monotonic()
            try:
                told = self._told.get(timeout=left) if left > 0 else self._told.get_nowait()
            except queue.Empty:
                found = self._overdue()
                if found or monotonic() >= until:
                    return found
                continue
            if told is None:
                break
            found += self._verdict(told)
        while not self._told.empty():
            if (told := self._told.get()) is not None:
                found += self._verdict(told)
        return found

    def wake(self) -> None:
        self._told.put(None)

    def interrupt(self) -> None:
        self._pending.clear()
        self._ends.clear()
        first = next(self._serials)
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

    def _tell(self, told: TaskOutcome) -> None:
        self._told.put(told)
        self._ready()

    def _verdict(self, told: TaskOutcome) -> list[Verdict]:
        """None for an attempt that was interrupted or has ended before."""
        pending = self._pending.get(told.event_id)
        if pending is None or pending[0].serial != told.serial:
            return []
        del self._pending[told.event_id]
        return [_verdict_of(told, pending[1])]

    def _overdue(self) -> list[Verdict]:
        """The attempts whose time is over."""
        now = monotonic()
        found: list[Verdict] = []
        while self._ends and self._ends[0][0] <= now:
            _, serial, event_id = heapq.heappop(self._ends)
            pending = self._pending.get(event_id)
            if pending is None or pending[0].serial != serial:
                continue
            asked, began = pending
            del self._pending[event_id]
            reason = self._why_overdue(asked, asked.until - began)
            found.append(_verdict_of(TaskOutcome(serial, event_id, Outcome.RETRY, reason), began))
        return found

    def _why_overdue(self, asked: TaskRequest, seconds: float) -> str:
        thread = self._threads.get(asked.action.broker)
        if asked.action.wait and thread is not None and thread.knows_no_results:
            backend = f"the result backend of {asked.action.broker} does not answer"
            return f"{backend}, so that nothing is known of the task after {seconds:g} s"
        doing = "end" if asked.action.wait else "reach its broker"
        return f"the task did not {doing} within {seconds:g} s"


def _not_named(asked: TaskRequest, setting: str) -> TaskOutcome:
    reason = f"this worker's {setting} does not name {asked.action.broker}"
    return TaskOutcome(asked.serial, asked.event.id, Outcome.RETRY, reason)


def _verdict_of(told: TaskOutcome, began: float) -> Verdict:
    error = told.reason or None
    duration_ms = (monotonic() - began) * 1000
    return Verdict(told.event_id, told.outcome, None, error, told.snippet, duration_ms, told.reason)
