"""Makes the requests: one thread, one libcurl multi handle, each request at its own instant."""

import heapq
import itertools
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import NamedTuple

from prometheus_client import Counter

from scheduler_app.callback import Answer, Sender
from scheduler_app.clock import monotonic
from scheduler_app.delivery.attempt import Attempt, set_aside
from scheduler_app.delivery.batch import ClaimedBatch
from scheduler_app.delivery.essential import EssentialThread
from scheduler_app.delivery.recorder import Outcome, Recorder
from scheduler_app.domain.event import State
from scheduler_app.telemetry import get_logger, metrics

log = get_logger(__name__)

IDLE_SECONDS = 60.0
#: While requests are in flight libcurl does the waiting, which nobody can interrupt: new jobs are looked for
#: this often.
POLL_SECONDS = 0.002
#: Beyond it requests wait here, and are given back when their lease has no more room.
MAX_IN_FLIGHT = 2_000
#: libcurl looks at every request in flight each time it is asked: a burst that is started all at once costs
#: the square of its size. So many are under way that were started within `YOUNG_SECONDS`; receivers that take
#: longer do not count, and hold up nobody.
MAX_YOUNG = 64
YOUNG_SECONDS = 0.05


@cache
def _ended_as(state: State) -> Counter:
    return metrics.attempts.labels(state.value)


class Job(NamedTuple):
    """An attempt and the batch whose lease it is made under."""

    attempt: Attempt
    batch: ClaimedBatch


class Courier(EssentialThread):
    """Starts each request when it is due, while its lease has room; hands outcomes to the recorder.

    One thread serves all batches of a process: connections are kept across batches, and a receiver that
    hangs holds nothing but its own connection.
    """

    def __init__(
        self, make_sender: Callable[[], Sender], recorder: Recorder, now: Callable[[], datetime]
    ) -> None:
        super().__init__("courier")
        self._make_sender = make_sender
        self._recorder = recorder
        self._now = now
        self._handed: queue.SimpleQueue[Sequence[Job]] = queue.SimpleQueue()
        self._waiting: list[tuple[datetime, int, Job]] = []
        self._order = itertools.count()
        self._flying: dict[str, tuple[Job, datetime]] = {}
        self._young: dict[str, float] = {}
        self._giving_back = threading.Event()
        self._interrupted = False
        self._ended = False

    def send(self, jobs: Sequence[Job]) -> None:
        """Hands over requests; their outcomes reach the recorder, or their batch as unstarted."""
        self._handed.put(jobs)

    def hold(self, until: datetime) -> None:
        """Waits, in the caller's thread, for `until`, or for the moment when nothing is started any more."""
        while (seconds := (until - self._now()).total_seconds()) > 0:
            if self._giving_back.wait(seconds):
                return

    def stop_starting(self) -> None:
        """From now on what has not started is given back; what is in flight goes on."""
        self._giving_back.set()
        self._wake()

    def interrupt(self) -> None:
        """What is in flight is no longer waited for, and is given back; it may have reached its receiver."""
        self._interrupted = True
        self._wake()

    def stop(self) -> None:
        """Ends the thread."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        self._handed.put(())

    def work(self) -> None:
        sender = self._make_sender()
        try:
            while not self._ended:
                self._take_over()
                self._start_due(sender)
                if self._interrupted:
                    self._let_go()
                answers = sender.wait(min(self._pause(), POLL_SECONDS))
                if answers:
                    # Together: each that is put by itself would wake the recorder's thread.
                    self._recorder.put([outcome for answer in answers if (outcome := self._finish(answer))])
        finally:
            sender.close()

    def _take_over(self) -> None:
        if not self._flying:
            with suppress(queue.Empty):
                self._push(self._handed.get(timeout=self._pause()))
        while not self._handed.empty():
            self._push(self._handed.get())

    def _push(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            heapq.heappush(self._waiting, (job.attempt.event.due_at, next(self._order), job))

    def _pause(self) -> float:
        if not self._waiting:
            return IDLE_SECONDS
        if self._is_busy():
            return POLL_SECONDS
        return min(IDLE_SECONDS, max(0.0, (self._waiting[0][0] - self._now()).total_seconds()))

    def _start_due(self, sender: Sender) -> None:
        while self._waiting:
            now = self._now()
            due_at, _, job = self._waiting[0]
            if due_at > now and not self._giving_back.is_set():
                return
            attempt = job.attempt
            # Two in flight under one id: a claim that was lost and won again by this same process.
            twice = attempt.event.id in self._flying
            no_time = not job.batch.has_room_for(attempt.schedule.timeout_seconds)
            if twice or no_time or self._giving_back.is_set():
                heapq.heappop(self._waiting)
                job.batch.leave(attempt.event.id)
            elif self._is_busy():
                return
            else:
                heapq.heappop(self._waiting)
                self._start(sender, job, now)

    def _is_busy(self) -> bool:
        """Whether what is under way has to come first."""
        grown = monotonic() - YOUNG_SECONDS
        while self._young and next(iter(self._young.values())) < grown:
            del self._young[next(iter(self._young))]
        return len(self._young) >= MAX_YOUNG or len(self._flying) >= MAX_IN_FLIGHT

    def _start(self, sender: Sender, job: Job, started_at: datetime) -> None:
        attempt = job.attempt
        try:
            request = attempt.request(started_at)
        except Exception as error:  # our own fault with this one event: it is set aside, the others go on
            self._recorder.put([self._set_aside(job, error)])
            return
        sender.start(request)
        self._flying[attempt.event.id] = job, started_at
        self._young[attempt.event.id] = monotonic()
        metrics.lag.observe(max(0.0, attempt.lag(started_at)))

    def _finish(self, answer: Answer) -> Outcome | None:
        landed = self._flying.pop(answer.key, None)
        self._young.pop(answer.key, None)
        if landed is None:
            return None  # it was let go
        job, started_at = landed
        try:
            record = job.attempt.record(answer, started_at)
        except Exception as error:  # the same at the other end
            return self._set_aside(job, error)
        _ended_as(record.state).inc()
        metrics.callback_duration.observe(answer.duration_ms / 1000)
        return Outcome(record, job.batch)

    def _let_go(self) -> None:
        for job, _ in self._flying.values():
            job.batch.leave(job.attempt.event.id)
        self._flying.clear()
        self._young.clear()

    def _set_aside(self, job: Job, error: Exception) -> Outcome:
        attempt = job.attempt
        log.exception(
            "deliver.broken", message="An event breaks our code; it is set aside", event_id=attempt.event.id
        )
        reason = f"{type(error).__name__}: {error}"
        record = set_aside(attempt.event, attempt.token, attempt.worker, reason, self._now())
        return Outcome(record, job.batch)
