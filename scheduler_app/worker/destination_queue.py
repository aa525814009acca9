"""The attempts that wait in one worker for one destination, and what they ask the limiter for."""

from collections import deque
from dataclasses import dataclass, field
from itertools import islice

from scheduler_app.domain.destination import Destination
from scheduler_app.domain.flow import SLOT_GRACE_SECONDS, Ask, Ended, Why
from scheduler_app.worker.job import Job

#: The most requests of one destination that one question asks for.
WANTED_AT_ONCE = 100
#: Jobs that have to wait longer than this are postponed in MongoDB; no others are.
KEPT_SECONDS = 4.0
#: A destination may wait here with so many events, whatever its rate.
LEAST_KEPT, MOST_KEPT = 20, 2_000
#: Slots in flight are renewed so often.
RENEW_SECONDS = 1.0


@dataclass(slots=True)
class DestinationQueue:
    """Not safe for threads: whoever has it holds the lock of `FlowControl`."""

    destination: Destination
    jobs: deque[Job] = field(default_factory=deque)
    held: dict[str, None] = field(default_factory=dict)
    """The events whose requests are in flight."""
    ended: list[Ended] = field(default_factory=list)
    """The ends of requests that the limiter does not know of yet."""
    again_at: float = 0.0
    """When it is worth asking for room, in monotonic seconds."""
    renewed_at: float = 0.0
    looked_at: float = 0.0
    """When all that waits was last searched for what is lost."""
    overdue: Why | None = None
    """Why all that waits is to be put off: the wait is too long."""

    @property
    def next_at(self) -> float:
        """When it has something to ask, in monotonic seconds."""
        if self.jobs or self.ended:
            return self.again_at if not self.overdue else 0.0
        return self.renewed_at + RENEW_SECONDS

    def ask(self, now: float) -> Ask | None:
        """The question to ask now, which takes the ended requests along; None if there is nothing to ask."""
        asks = now >= self.again_at and bool(self.jobs)
        renews = bool(self.held) and now >= self.renewed_at + RENEW_SECONDS
        if not (asks or renews or self.ended or self.overdue):
            return None
        self.renewed_at = now
        made = self.destination
        rate = made.rate_per_second or 0.0
        kept = max(LEAST_KEPT, min(MOST_KEPT, int(rate * KEPT_SECONDS) or MOST_KEPT))
        reserve = len(self.jobs) if self.overdue else max(0, len(self.jobs) - kept)
        jobs = list(islice(self.jobs, WANTED_AT_ONCE)) if asks and not self.overdue else []
        ended, self.ended = self.ended, []
        longest = max((job.attempt.deliverable.timeout_seconds for job in jobs), default=0.0)
        return Ask(
            destination=made,
            wanted=[job.attempt.event.id for job in jobs],
            held=list(self.held),
            ended=ended,
            reserve=reserve,
            slot_seconds=max(longest, made.timeout_seconds or 0.0) + SLOT_GRACE_SECONDS,
        )

    def drop_lost(self, now: float) -> int:
        """Drops the jobs whose leases were lost, because other workers have them; returns how many these are.

        Each round checks the jobs that may start in it, and only now and then all that wait: they may be
        thousands, in a hundred rounds a second."""
        looked = islice(self.jobs, WANTED_AT_ONCE)
        if now >= self.looked_at + RENEW_SECONDS:
            looked, self.looked_at = islice(self.jobs, None), now
        if not any(job.lease.is_lost(job.attempt.event.id) for job in looked):
            return 0
        kept = deque(job for job in self.jobs if not job.lease.is_lost(job.attempt.event.id))
        lost = len(self.jobs) - len(kept)
        self.jobs = kept
        return lost
