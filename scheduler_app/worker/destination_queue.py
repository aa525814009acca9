"""The attempts that wait in one worker for one destination, or for a slot of their tenant, and what they ask
the limiter for."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from scheduler_app.domain.destination import Destination
from scheduler_app.domain.flow_control import SLOT_GRACE_SECONDS, FinishedRequest, FlowRequest, WaitReason
from scheduler_app.domain.tenant import DeliverySlots
from scheduler_app.worker.attempt import Job
from scheduler_app.worker.recorder import Withdrawn
from scheduler_app.worker.rejudging import Present

#: The most requests of one destination that one question asks for.
WANTED_AT_ONCE = 100
#: Jobs that have to wait longer than this are postponed in MongoDB; no others are.
KEPT_SECONDS = 4.0
#: The most events of one destination that may wait here, however fast it is.
MOST_KEPT = 2_000
#: How many may wait in any case: for each request that it takes at once, or by its rate alone.
LEAST_KEPT_OF_CONCURRENCY, LEAST_KEPT_OF_RATE = 2, 4
#: The weight of the last answer in the mean duration.
LAST_SHARE = 0.1
#: Slots in flight are renewed so often.
RENEW_SECONDS = 1.0


@dataclass(slots=True)
class DestinationQueue:
    """Not safe for threads: its callers hold the lock of `FlowControl`."""

    destination: Destination | DeliverySlots
    jobs: deque[Job] = field(default_factory=deque)
    asking: list[Job] = field(default_factory=list)
    """The first of them, while the limiter is asked for their room."""
    held: dict[str, float] = field(default_factory=dict)
    """The events whose requests are in flight, and since when."""
    took: float = 0.0
    """How long a request takes, in seconds; 0: none was answered yet."""
    ended: list[FinishedRequest] = field(default_factory=list)
    """The ends of requests that the limiter does not know of yet."""
    again_at: float = 0.0
    """When it is worth asking for room, in monotonic seconds."""
    renewed_at: float = 0.0
    looked_at: float = 0.0
    """When all that waits was last searched for what is lost."""
    overdue: WaitReason | None = None
    """Why all that waits is to be put off: the wait is too long."""

    @property
    def next_at(self) -> float:
        """When it has something to ask, in monotonic seconds."""
        if self.jobs or self.ended:
            return self.again_at if not self.overdue else 0.0
        return self.renewed_at + RENEW_SECONDS

    def ask(self, now: float) -> FlowRequest | None:
        """The question to ask now, which takes the ended requests along; None if there is nothing to ask."""
        asks = now >= self.again_at and bool(self.jobs)
        renews = bool(self.held) and now >= self.renewed_at + RENEW_SECONDS
        if not (asks or renews or self.ended or self.overdue):
            return None
        self.renewed_at = now
        destination = self.destination
        reserve = len(self.jobs) if self.overdue else max(0, len(self.jobs) - self._kept(now))
        if asks and not self.overdue:
            self.asking = [self.jobs.popleft() for _ in range(min(WANTED_AT_ONCE, len(self.jobs)))]
        jobs = self.asking
        ended, self.ended = self.ended, []
        longest = max((job.attempt.deliverable.timeout_seconds for job in jobs), default=0.0)
        return FlowRequest(
            destination=destination,
            wanted=[job.attempt.event.id for job in jobs],
            held=list(self.held),
            ended=ended,
            reserve=reserve,
            slot_seconds=max(longest, destination.timeout_seconds or 0.0) + SLOT_GRACE_SECONDS,
        )

    def put(self, job: Job) -> None:
        """Queues a job: one that was judged again has its place in front again."""
        waiting = self.asking or self.jobs
        if waiting and job.attempt.event.due_at < waiting[0].attempt.event.due_at:
            self.jobs.appendleft(job)
        else:
            self.jobs.append(job)

    def let_go(self, presents: Sequence[Present], now: datetime) -> tuple[list[Job], list[Withdrawn]]:
        """Takes out the jobs that have to be judged again at `now`, and those that are cancelled."""
        again: list[Job] = []
        cancelled: list[Withdrawn] = []
        for present in presents:
            stay, differing, withdrawn = present.parted(self.jobs)
            if len(stay) < len(self.jobs):
                self.jobs = deque(stay)
                again += differing
                cancelled += map(present.voided, withdrawn)
        if any(job.attempt.may_be_late(now) for job in islice(self.jobs, WANTED_AT_ONCE)):
            again += [job for job in self.jobs if job.attempt.may_be_late(now)]
            self.jobs = deque(job for job in self.jobs if not job.attempt.may_be_late(now))
        return again, cancelled

    def answered(self, granted: int) -> list[Job]:
        """Returns those that were asked for and may start; the others wait again, in front."""
        may_start, waiting = self.asking[:granted], self.asking[granted:]
        if isinstance(self.destination, DeliverySlots):
            may_start = [job._replace(has_slot=True) for job in may_start]
        self.jobs.extendleft(reversed(waiting))
        self.asking = []
        return may_start

    def ended_with(self, ended: FinishedRequest, *, most: int) -> None:
        """Notes the end of a request; the limiter hears of the last `most` that it does not know of."""
        self.held.pop(ended.event_id, None)
        if ended.took is not None:
            self.took += (ended.took - self.took) * (LAST_SHARE if self.took else 1.0)
        if isinstance(self.destination, DeliverySlots):  # a receiver asks for itself alone
            ended = ended._replace(slow_down=False)
        self.ended.append(ended)
        del self.ended[:-most]

    def step(self, now: float) -> float:
        """How many seconds two requests are apart, as far as this worker knows."""
        destination = self.destination
        step = 1 / destination.rate_per_second if destination.rate_per_second else 0.0
        if destination.concurrency:
            # Before the first answer: one takes at least as long as the oldest has been waiting for its own.
            took = self.took or (now - next(iter(self.held.values())) if self.held else 0.0)
            step = max(step, took / destination.concurrency)
        return step

    def _kept(self, now: float) -> int:
        """How many may wait here: what its destination can be sent within `KEPT_SECONDS`."""
        step, concurrency = self.step(now), self.destination.concurrency
        least = LEAST_KEPT_OF_CONCURRENCY * concurrency if concurrency else LEAST_KEPT_OF_RATE
        return max(
            least, min(MOST_KEPT, self.destination.burst + int(KEPT_SECONDS / step) if step else MOST_KEPT)
        )

    def drop_lost(self, now: float) -> list[str]:
        """Drops the jobs whose leases were lost, because other workers have them; returns their events.

        Each round checks the jobs that may start in it, and only now and then all that wait: they may be
        thousands, in a hundred rounds a second."""
        looked = islice(self.jobs, WANTED_AT_ONCE)
        if now >= self.looked_at + RENEW_SECONDS:
            looked, self.looked_at = islice(self.jobs, None), now
        if not any(job.lease.is_lost(job.attempt.event.id) for job in looked):
            return []
        lost = [job.attempt.event.id for job in self.jobs if job.lease.is_lost(job.attempt.event.id)]
        gone = set(lost)
        self.jobs = deque(job for job in self.jobs if job.attempt.event.id not in gone)
        return lost
