"""What a schedule expects of its runs. What is not as expected is told; nothing is ended by it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.domain.cause import CauseKey, CauseKind, Tally, found
from scheduler_app.domain.ids import WholeId, tenant_of
from scheduler_app.domain.instants import shown_instant

LEAST_EXPECTED_SECONDS: Final = 1.0
MAX_EXPECTED_SECONDS: Final = 400 * 86_400.0
#: The kinds of causes that expectations open.
EXPECTED_KINDS: Final = (CauseKind.OVERRUNNING, CauseKind.NOT_COMPLETED, CauseKind.NO_SUCCESS)


@dataclass(frozen=True, slots=True)
class Expectation:
    """Each holds unless it is None; one of them is given."""

    max_runtime_seconds: float | None = None
    completes_within_seconds: float | None = None
    success_within_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRuns:
    """What a look found of a schedule that expects something."""

    schedule_id: WholeId
    expect: Expectation
    tags: tuple[str, ...] = ()
    is_active: bool
    counted_from: datetime
    """When it was made, or began to plan anew: a resume starts the time for a success over."""
    running: tuple[str, datetime] | None = None
    """The event whose attempt has run for longest, and since when."""
    unfinished: tuple[str, datetime] | None = None
    """The oldest event that has not ended, and its run time."""
    gave_up: tuple[str, datetime] | None = None
    """The newest event, where it ended in error, and its run time."""
    succeeded_at: datetime | None = None
    """When a run last succeeded; None where none of those that were looked at did."""

    @property
    def tenant(self) -> str:
        return tenant_of(self.schedule_id)

    def wants_success(self, now: datetime) -> bool:
        """Whether it matters at `now` when a run last succeeded."""
        seconds = self.expect.success_within_seconds
        return (
            seconds is not None and self.is_active and now - self.counted_from >= timedelta(seconds=seconds)
        )

    def tallies(self, now: datetime) -> Iterator[Tally]:
        """What is not as expected at `now`."""
        since = max(self.counted_from, self.succeeded_at or self.counted_from)
        success = ("", since) if self.is_active else None
        expect = self.expect
        for kind, seconds, begun in (
            (CauseKind.OVERRUNNING, expect.max_runtime_seconds, [self.running]),
            (CauseKind.NOT_COMPLETED, expect.completes_within_seconds, [self.unfinished, self.gave_up]),
            (CauseKind.NO_SUCCESS, expect.success_within_seconds, [success]),
        ):
            for each in begun:
                if seconds is None or each is None or now < each[1] + timedelta(seconds=seconds):
                    continue
                event_id, began = each
                said = _SAID[kind].format(at=shown_instant(began), seconds=f"{seconds:,g}")
                ends = began + timedelta(seconds=seconds)
                yield replace(
                    found(CauseKey(self.tenant, kind, self.schedule_id), ends, now, said),
                    failed=1 if event_id else 0,
                    event_id=event_id,
                    schedules={self.schedule_id: now},
                    tags=dict.fromkeys(self.tags),
                )
                break


_SAID: Final = {
    CauseKind.OVERRUNNING: "a run has taken longer than {seconds} s",
    CauseKind.NOT_COMPLETED: "the run of {at} was not completed within {seconds} s of its time",
    CauseKind.NO_SUCCESS: "no run has succeeded for {seconds} s",
}
