"""What a schedule owes, computed by counting seconds: apart from the code under test.

A schedule's time is cut into eras. An era owns the instants after its `since` up to and including the next
one's, and owes those of them whose distance from its `start` is a multiple of its `step`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

SECOND = timedelta(seconds=1)
#: A worker reads the schedule, then starts the request: on a machine with too much to do, a moment later.
ABOUT_TO_START_SECONDS = 1.0
#: An edit that was answered so long before an instant is obeyed: the manual promises it.
OBEYED_AHEAD_SECONDS = 0.1


@dataclass(frozen=True)
class Era:
    """What a revision owes; `step` 0 is nothing, `count` bounds a rule that ends by itself.

    An edit takes its instant when it is asked for, and is written a little later: what the old rule has sent
    in between, before the one who asked had an answer (`answered_at`, Unix seconds), moves the new one's
    beginning. The `revision` tells them apart.
    """

    since: datetime
    start: datetime
    step: int
    count: int | None = None
    revision: int = 1
    answered_at: float = 0.0

    def owes(self, since: datetime, until: datetime) -> set[datetime]:
        """Its occurrences after `since` up to and including `until`."""
        if not self.step:
            return set()
        found, number, moment = set(), 0, self.start
        while moment <= until and (self.count is None or number < self.count):
            if moment > since:
                found.add(moment)
            number, moment = number + 1, moment + self.step * SECOND
        return found


@dataclass(frozen=True)
class Script:
    """How a receiver's path answers an event: `requests` it takes until `state` is reached."""

    path: str
    requests: int = 1
    state: str = "completed"
    max_retries: int = 6


@dataclass(frozen=True)
class Lateness:
    """What a schedule says of its late occurrences; seconds."""

    catch_up: str = "all"
    late_after: float = 60.0
    window: float = 3_600.0
    expire_after: float | None = None

    def lets_expire(self, moment: datetime, at: datetime, *, newest: bool) -> bool:
        """Whether an occurrence may have expired at that instant; `newest`: none that was due came after."""
        late = (at - moment).total_seconds()
        if self.expire_after is not None and late > self.expire_after:
            return True
        if self.catch_up == "all" or late <= self.late_after:
            return False
        return self.catch_up == "none" or late > self.window or not newest


SENT_HOWEVER_LATE = Lateness()


@dataclass
class Owed:
    """One schedule of a load and what is to become of it."""

    schedule_id: str
    script: Script
    eras: list[Era] = field(default_factory=list)
    instants: tuple[datetime, ...] = ()
    """Of a `run_at`, which knows no eras."""
    deleted_at: datetime | None = None
    lateness: Lateness = SENT_HOWEVER_LATE
    run_overlap: str = "allow"
    """Its policy: but for `allow`, some of what it owes is skipped or cancelled."""
    tags: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Its cuts, for somebody who looks into a break."""
        return "; ".join(
            f"revision {era.revision} after {era.since:%H:%M:%S.%f}: each {era.step} s,"
            f" answered at {era.answered_at:.3f}"
            for era in self.eras
        )

    def run_times(self, sent: Sequence[tuple[int, datetime]], until: datetime) -> set[datetime]:
        """All that it owes up to `until`; `sent` are the events called, by revision and instant."""
        owed = set(self.instants)
        ends = [*(era.since for era in self.eras[1:]), until]
        for era, end in zip(self.eras, ends, strict=False):
            overtaken = [
                moment for revision, moment in sent if revision < era.revision and moment > era.since
            ]
            owed |= era.owes(max([era.since, *overtaken]), end)
        return owed

    def was_on_its_way(self, moment: datetime, called_at: float) -> bool:
        """Whether a call for an instant past a cut was about to be made when that cut was answered.

        For an instant sooner than `OBEYED_AHEAD_SECONDS` after the answer a worker may have read the schedule
        before, and one that stands still in between starts the request however late.
        """
        answered = [era.answered_at for era in self.eras[1:] if era.since < moment]
        if not answered:
            return False
        obeyed_from = max(answered) + OBEYED_AHEAD_SECONDS
        return called_at <= max(answered) + ABOUT_TO_START_SECONDS or moment.timestamp() < obeyed_from

    def may_be_missing(self, moment: datetime) -> bool:
        """A deletion voids what it finds unsent: what nobody had made an event of is not made any more."""
        return self.deleted_at is not None and moment > self.eras[-2].since
