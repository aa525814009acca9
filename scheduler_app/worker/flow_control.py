"""Holds back attempts whose destinations, or tenants, have limits, until all workers together have room for
them."""

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from scheduler_app.actions.kind import Outcome, Verdict
from scheduler_app.clock import monotonic
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.flow_control import (
    FinishedRequest,
    FlowGrant,
    FlowRequest,
    Limiter,
    ReceiverAnswer,
    WaitReason,
)
from scheduler_app.domain.tenant import DeliverySlots
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.worker.attempt import Job, postponed
from scheduler_app.worker.courier import Courier
from scheduler_app.worker.destination_queue import KEPT_SECONDS, DestinationQueue
from scheduler_app.worker.essential_thread import EssentialThread
from scheduler_app.worker.recorder import Delayed, GivenBack, Recorder
from scheduler_app.worker.rejudging import Present

log = get_logger(__name__)

#: How long to wait between two questions, at least and at most.
LEAST_PAUSE, LONGEST_PAUSE = 0.01, 0.5
#: While the limits are not known, events come again after so long; and of paused destinations.
UNKNOWN_SECONDS, PAUSED_SECONDS = 10.0, 60.0
#: Ends of requests that are kept while Redis is away; the slots of older ones run out.
MAX_ENDED = 10_000
#: Between two that are put off together, so that they keep their order.
ORDER = timedelta(milliseconds=1)
#: Statuses by which a receiver asks for fewer requests.
SLOW_DOWN = (429, 503)
#: Destinations whose breakers are shown in metrics.
MAX_SHOWN = 100
SHOWN_LONGER_SECONDS = 30.0


class FlowControl(EssentialThread):
    """One thread of a worker, which alone asks the limiter: neither the courier nor those who read schedules
    wait for it.

    An attempt takes its token and its slot just before it goes to the courier, so that what the receiver sees
    follows what was granted within milliseconds.
    """

    def __init__(
        self, limiter: Limiter | None, courier: Courier, recorder: Recorder, *, now: Callable[[], datetime]
    ) -> None:
        """`limiter` None: the broker cannot count, and what has limits is put off."""
        super().__init__("flow-control")
        self._limiter = limiter
        self._courier = courier
        self._recorder = recorder
        self._now = now
        self._changed = threading.Condition()
        self._queues: dict[str, DestinationQueue] = {}
        self._held_by: dict[str, tuple[str, ...]] = {}
        """The destination, and the slots of the tenant, that events in flight take room of, by their ids."""
        self._giving_back = False
        self._ended = False
        self._is_away = False
        self._open: dict[str, float] = {}
        self._present: list[Present] = []
        self._judge_again: Callable[[Sequence[Job]], None] | None = None

    def judge_again_by(self, judge_again: Callable[[Sequence[Job]], None]) -> None:
        """Sets what takes jobs that have to be judged again. Call it before `start`."""
        self._judge_again = judge_again

    # -- any thread --------------------------------------------------------------------------------------

    def waiting(self) -> list[Job]:
        """The jobs that wait."""
        with self._changed:
            return [job for queue in self._queues.values() for job in (*queue.asking, *queue.jobs)]

    def compare(self, present: Present) -> None:
        """Lets go of the jobs that differ from it, before it asks for the next one."""
        with self._changed:
            self._present.append(present)
            self._changed.notify()

    def put(self, jobs: Sequence[tuple[Destination | DeliverySlots, Job]]) -> None:
        """Takes over attempts that are due; each reaches the courier when there is room, or the recorder. One
        with room at its destination keeps it while it waits for a slot of its tenant."""
        with self._changed:
            for destination, job in jobs:
                queue = self._queues.get(destination.id)
                if queue is None:
                    queue = self._queues[destination.id] = DestinationQueue(destination)
                if destination.version >= queue.destination.version:
                    queue.destination = destination
                queue.put(job)
                queue.again_at = min(queue.again_at, monotonic())
            self._changed.notify()

    def finished(self, verdict: Verdict) -> None:
        """Notes the end of an attempt, and what it says of its destination."""
        if verdict.event_id in self._held_by:
            self._note(_ended_request(verdict))

    def dropped(self, event_ids: Sequence[str]) -> None:
        """Notes that these have no request in flight any more, if they had one."""
        for event_id in event_ids:
            if event_id in self._held_by:
                self._note(FinishedRequest(event_id, ReceiverAnswer.NOTHING))

    def _note(self, ended: FinishedRequest) -> None:
        with self._changed:
            for own_id in self._held_by.pop(ended.event_id, ()):
                if (queue := self._queues.get(own_id)) is not None:
                    queue.ended_with(ended, most=MAX_ENDED)
            self._changed.notify()

    def stop_starting(self) -> None:
        """Gives back what waits, from now on."""
        with self._changed:
            self._giving_back = True
            self._changed.notify()

    def stop(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()

    def open_breakers(self, now: float) -> list[str]:
        """The destinations whose breakers this worker found open, `MAX_SHOWN` at most; `now` is in monotonic
        seconds. One that another worker has closed is forgotten some seconds after its next probe was due."""
        with self._changed:
            return [own_id for own_id, until in self._open.items() if now < until]

    # -- its own thread ----------------------------------------------------------------------------------

    def work(self) -> None:
        try:
            while True:
                with self._changed:
                    self._changed.wait(self._pause())
                    if self._ended:
                        break
                    if self._giving_back:
                        self._give_back()
                    self._obey_present()
                    round_ = self._round(monotonic())
                if round_:
                    self._ask([queue for queue, _ in round_], [ask for _, ask in round_])
        finally:
            if self._limiter is not None:
                self._limiter.close()

    def _pause(self) -> float | None:
        """How long nothing has to be done; None until something comes."""
        if not self._queues:
            return None
        now = monotonic()
        at = min(queue.next_at for queue in self._queues.values())
        return min(LONGEST_PAUSE, max(LEAST_PAUSE, at - now))

    def _obey_present(self) -> None:
        """Lets go of what has to be judged again, because something changed or it may be too late now."""
        presents, self._present = self._present, []
        now = self._now()
        for queue in self._queues.values():
            again, cancelled = queue.let_go(presents, now)
            if again and self._judge_again is not None:
                self.dropped([job.attempt.event.id for job in again])
                self._judge_again(again)
            if cancelled:
                self._recorder.put(cancelled)

    def _give_back(self) -> None:
        for queue in self._queues.values():
            if queue.jobs:
                self._recorder.put([GivenBack(job.attempt.event.id, job.lease) for job in queue.jobs])
                queue.jobs.clear()

    def _round(self, now: float) -> list[tuple[DestinationQueue, FlowRequest]]:
        """The questions to ask now. Forgets destinations for which no job waits or runs."""
        found: list[tuple[DestinationQueue, FlowRequest]] = []
        for own_id, queue in list(self._queues.items()):
            if lost := queue.drop_lost(now):
                self._courier.lost(len(lost))
                self.dropped(lost)
            if not (queue.jobs or queue.held or queue.ended):
                del self._queues[own_id]
                continue
            if queue.destination.paused and queue.jobs:
                self._put_off_paused(queue)
            if (ask := queue.ask(now)) is not None:
                found.append((queue, ask))
        return found

    def _ask(self, queues: Sequence[DestinationQueue], asks: Sequence[FlowRequest]) -> None:
        try:
            grants = self._decided(asks)
        except self._unavailable as error:
            if not self._is_away:
                log.warning(
                    "flow.unknown",
                    message="The limits of destinations cannot be read; their events are postponed",
                    error=str(error)[:300],
                )
            self._is_away = True
            with self._changed:
                for queue, ask in zip(queues, asks, strict=True):
                    queue.answered(0)
                    queue.ended = [*ask.ended, *queue.ended][-MAX_ENDED:]
                    queue.again_at = monotonic() + LONGEST_PAUSE
                    self._put_off(queue, len(queue.jobs), UNKNOWN_SECONDS, 0.0, WaitReason.UNKNOWN)
            return
        if self._is_away:
            log.info("flow.known", message="The limits of destinations can be read again")
        self._is_away = False
        starting: list[Job] = []
        with self._changed:
            for queue, ask, grant in zip(queues, asks, grants, strict=True):
                starting += self._obey(queue, ask, grant)
                self._note_breaker(queue.destination, grant, monotonic())
        if starting:
            self._courier.send(starting)

    def _decided(self, asks: Sequence[FlowRequest]) -> list[FlowGrant]:
        if self._limiter is None:
            raise ConnectionError("this broker cannot count; limits need Redis as the broker")
        return self._limiter.decide(asks)

    @property
    def _unavailable(self) -> tuple[type[Exception], ...]:
        return (OSError,) if self._limiter is None else (*self._limiter.unavailable, OSError)

    def _obey(self, queue: DestinationQueue, ask: FlowRequest, grant: FlowGrant) -> list[Job]:
        """Returns what may start, and puts off what has to wait too long."""
        starting, now = queue.answered(grant.granted), monotonic()
        for job in starting:
            event_id, own_id = job.attempt.event.id, queue.destination.id
            queue.held[event_id] = now
            self._held_by[event_id] = (*self._held_by.get(event_id, ()), own_id)
        if ask.wanted or grant.why is not None:
            queue.again_at = now + min(LONGEST_PAUSE, max(LEAST_PAUSE, grant.wait))
        if ask.reserve:
            why = queue.overdue or grant.why or WaitReason.RATE
            step = max(grant.step, queue.step(now))
            self._put_off(queue, min(ask.reserve, len(queue.jobs)), grant.first, step, why)
            queue.overdue = None
        elif queue.jobs and grant.wait > KEPT_SECONDS:
            queue.overdue = grant.why  # in the next round, which takes places in the line for them
        return starting

    def _put_off_paused(self, queue: DestinationQueue) -> None:
        self._put_off(queue, len(queue.jobs), PAUSED_SECONDS, 0.0, WaitReason.PAUSED)

    def _put_off(
        self, queue: DestinationQueue, count: int, first: float, step: float, why: WaitReason
    ) -> None:
        """Postpones the last `count`: the first of them by `first` seconds, the others `step` apart."""
        jobs = [queue.jobs.pop() for _ in range(count)][::-1]
        now = self._now()
        self._recorder.put(
            [
                _delayed(job, now + timedelta(seconds=first + place * step) + place * ORDER, queue, why)
                for place, job in enumerate(jobs)
            ]
        )
        metrics.flow_postponed.labels(why.name.lower()).inc(count)

    def _note_breaker(self, destination: Destination | DeliverySlots, grant: FlowGrant, now: float) -> None:
        self._open.pop(destination.id, None)
        if grant.is_open and destination.breaker is not None:
            while len(self._open) >= MAX_SHOWN:
                del self._open[next(iter(self._open))]
            self._open[destination.id] = now + destination.breaker.open_seconds + SHOWN_LONGER_SECONDS


def _delayed(job: Job, due_at: datetime, queue: DestinationQueue, why: WaitReason) -> Delayed:
    reason = f"{queue.destination.whose} waits for {why.value}"
    return postponed(job.attempt.event, job.lease, due_at, reason)


def _ended_request(verdict: Verdict) -> FinishedRequest:
    status = verdict.status_code
    slow = status in SLOW_DOWN
    if verdict.outcome is Outcome.RETRY or slow:
        answer = ReceiverAnswer.FAILED
    elif verdict.outcome is Outcome.SUCCESS or status is not None:
        answer = ReceiverAnswer.WELL
    else:
        answer = ReceiverAnswer.NOTHING
    took = verdict.duration_ms / 1000
    return FinishedRequest(verdict.event_id, answer, status, took, slow, verdict.retry_after)
