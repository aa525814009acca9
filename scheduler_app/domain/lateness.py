"""What becomes of an event that is late: whether it is still sent, or expires, and by which policy."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, Protocol

from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.states import Kind

DEFAULT_WINDOW_SECONDS = 3_600.0
DEFAULT_LATE_AFTER_SECONDS = 60.0
#: A call that is on time starts within a second of its time, and everything would be late after less.
LEAST_SECONDS = 1.0
#: Ten years.
MAX_SECONDS = 315_576_000.0


class CatchUp(StrEnum):
    """Which late occurrences of a schedule are still sent: the words in the code, in MongoDB and on the
    wire."""

    ALL = "all"
    LATEST = "latest"
    NONE = "none"


class ExpiryPolicy(StrEnum):
    """By what an event expired, as metrics count it."""

    NONE = "catch_up_none"
    LATEST = "catch_up_latest"
    WINDOW = "catch_up_window"
    EXPIRE_AFTER = "expire_after"


class Expiry(NamedTuple):
    """Why an event expired."""

    policy: ExpiryPolicy
    message: str
    """A sentence for its history."""


class TimedEvent(Protocol):
    """What an event must tell of itself to be judged."""

    @property
    def kind(self) -> Kind: ...

    @property
    def run_time(self) -> datetime: ...

    @property
    def due_since(self) -> datetime | None: ...

    @property
    def attempt(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Lateness:
    """What a schedule or a message says of its late events. All times are seconds."""

    catch_up: CatchUp = CatchUp.ALL
    window_seconds: float = DEFAULT_WINDOW_SECONDS
    """Of `latest`: how late the newest missed occurrence may still be sent."""
    late_after_seconds: float = DEFAULT_LATE_AFTER_SECONDS
    """An occurrence that is later than this was missed."""
    expire_after_seconds: float | None = None
    """How long after it was due an event that is not completed is given up; None: never."""

    @property
    def judges(self) -> bool:
        """Whether anything ever expires by it. Most schedules have none of this, and pay for none."""
        return self.catch_up is not CatchUp.ALL or self.expire_after_seconds is not None

    def expires_before(self, now: datetime) -> datetime | None:
        """The instant before which an occurrence that no worker has begun is too late, but for the newest
        one of `latest`; None if none is."""
        spans = [] if self.expire_after_seconds is None else [self.expire_after_seconds]
        if self.catch_up is not CatchUp.ALL:
            spans.append(self.late_after_seconds)
        return now - timedelta(seconds=min(spans)) if spans else None

    def expiry(self, event: TimedEvent, now: datetime, later: Callable[[], datetime | None]) -> Expiry | None:
        """Why `event` is not to be begun at `now`; None if it is to be sent.

        `later` tells the next occurrence of its rule, or None if that is not due yet; it is asked only
        where the answer depends on it. `catch_up` speaks of occurrences of a rule that no attempt was made
        for; `expire_after_seconds` of every event.
        """
        since = _due_since(event)
        if since is None:
            return None
        late = now - since
        if self.expire_after_seconds is not None and late > timedelta(seconds=self.expire_after_seconds):
            return Expiry(
                ExpiryPolicy.EXPIRE_AFTER,
                f"Expired: {_length(late)} after it was due, which is more than expire_after_seconds"
                f" ({self.expire_after_seconds:g})",
            )
        if self.catch_up is CatchUp.ALL or event.kind is not Kind.SCHEDULED or event.attempt:
            return None
        if late <= timedelta(seconds=self.late_after_seconds):
            return None
        said = (
            f"Expired: {_length(late)} late, more than late_after_seconds ({self.late_after_seconds:g}), and"
        )
        if self.catch_up is CatchUp.NONE:
            return Expiry(ExpiryPolicy.NONE, f"{said} catch_up is none")
        if late > timedelta(seconds=self.window_seconds):
            return Expiry(
                ExpiryPolicy.WINDOW,
                f"{said} catch_up is latest, which sends nothing later than catch_up_window_seconds"
                f" ({self.window_seconds:g})",
            )
        following = later()
        if following is None:
            return None
        return Expiry(
            ExpiryPolicy.LATEST,
            f"{said} catch_up is latest: a later occurrence, of {shown_instant(following)}, is due too",
        )

    def changes_after(self, event: TimedEvent, now: datetime) -> datetime | None:
        """When `expiry`, which finds at `now` that `event` is sent, may find something else; None: never."""
        since = _due_since(event)
        if since is None:
            return None
        spans = [] if self.expire_after_seconds is None else [self.expire_after_seconds]
        if self.catch_up is not CatchUp.ALL and event.kind is Kind.SCHEDULED and not event.attempt:
            spans += [self.late_after_seconds]
            spans += [self.window_seconds] if self.catch_up is CatchUp.LATEST else []
        # By `latest` also at any time from then on, when a later occurrence falls due: an event that has been
        # found the newest one stays that for the seconds in which it waits for its request.
        return min((at for span in spans if (at := since + timedelta(seconds=span)) >= now), default=None)

    def too_late_for(self, event: TimedEvent, at: datetime) -> str | None:
        """What is said of an event whose next attempt would start at `at`, when that is too late; None
        where it is not."""
        since = _due_since(event)
        if self.expire_after_seconds is None or since is None:
            return None
        if at - since <= timedelta(seconds=self.expire_after_seconds):
            return None
        return (
            f"the next would start at {shown_instant(at)}, more than expire_after_seconds"
            f" ({self.expire_after_seconds:g}) after it was due"
        )


DEFAULT_LATENESS = Lateness()


def _due_since(event: TimedEvent) -> datetime | None:
    """Since when it counts as late; None for what somebody asked for long after its occurrence."""
    if event.kind is Kind.BACKFILL and event.due_since is None:
        return None
    return event.due_since or event.run_time


def _length(span: timedelta) -> str:
    """`3 days 2 h`, `2 h 5 min`, `75 s`: two units at the most."""
    seconds = int(span.total_seconds())
    if seconds < 120:
        return f"{seconds} s"
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3_600)
    parts = [(days, "days" if days > 1 else "day"), (hours, "h"), (rest // 60, "min")]
    first = next(index for index, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count)
