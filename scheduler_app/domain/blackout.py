"""Blackouts: windows that recur, in which nothing is sent; and what they make of callbacks to come.

For callbacks to come, windows are computed once, and looked up for each callback.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, Literal, TypeVar

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.ids import WholeId, tenant_of, whole_id
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.kill_switch import Target
from scheduler_app.domain.triggers import Given, Trigger, TriggerContext, new_trigger

BlackoutPolicy = Literal["skip", "postpone"]
POLICIES: Final = ("skip", "postpone")
#: The triggers that may say when windows begin.
KINDS: Final = ("rrule", "cron", "phrase", "run_at")
MAX_DURATION: Final = timedelta(days=366)
LEAST_DURATION: Final = timedelta(seconds=1)
MAX_BLACKOUTS: Final = 100
#: Windows that touch or overlap are followed so far.
MAX_CHAIN: Final = 500
#: Windows of one blackout that may cover the same instant: where clocks change, two of them may.
_MOST_AT_ONCE: Final = 10
#: A window that began before the blackout was given counts, too.
_BEFORE: Final = timedelta(days=1)
_TICK: Final = timedelta(microseconds=1)
_KEPT: Final = 256
#: Less of the time than this is as good as none.
LEAST_OPEN: Final = 0.01
_LOOKED_AHEAD: Final = timedelta(days=400)
#: Blackouts of several targets that together never end: the event is looked at again after that time.
_LOOKED_AT_AGAIN: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Blackout:
    """One blackout: each occurrence of its trigger begins a window of its duration."""

    name: str
    target: Target
    """What is not sent: everything of a tenant, a schedule, a tag or what goes to a destination."""
    trigger: Trigger
    duration: timedelta
    """Elapsed time."""
    policy: BlackoutPolicy
    """What becomes of an occurrence within a window: it is skipped, or sent at the window's end."""
    created_at: datetime
    note: str | None = None

    @property
    def id(self) -> WholeId:
        """Its id among the blackouts of all tenants."""
        return whole_id(self.target.tenant, self.name)

    @classmethod
    def of(
        cls,
        name: str,
        target: Target,
        given: Given,
        duration: timedelta,
        policy: BlackoutPolicy,
        now: datetime,
        *,
        timezone: str,
        note: str | None = None,
    ) -> "Blackout":
        """The blackout that is asked for. Raises InvalidField, also for one that is always on."""
        if not any(given.get(kind) is not None for kind in KINDS):
            raise InvalidField(KINDS[0], f"give exactly one of {', '.join(KINDS)}")
        since = now - duration - _BEFORE
        trigger = new_trigger(given, TriggerContext(since, timezone=timezone))
        made = cls(name, target, trigger, duration, policy, now, note)
        first = made.next_start(now)
        if made.window(now) is None and first is None:
            raise InvalidField(
                trigger.kind.name, "has no window from now on: give one that recurs, or is to come"
            )
        made.check_end(now, ())
        return made

    def says_the_same(self, other: "Blackout") -> bool:
        """Whether the other one was given in the same words, whenever that was."""
        words = (other.trigger.kind, dict(other.trigger.written), other.trigger.timezone)
        return (self.trigger.kind, dict(self.trigger.written), self.trigger.timezone) == words and (
            self.target,
            self.duration,
            self.policy,
            self.note,
        ) == (other.target, other.duration, other.policy, other.note)

    def check_end(self, now: datetime, others: Sequence["Blackout"]) -> None:
        """Raises InvalidField where it never ends, by itself or together with `others`."""
        begins = now if self.window(now) is not None else self.next_start(now)
        if begins is not None and _open_share((self, *others), begins) < LEAST_OPEN:
            beside = f", with {', '.join(each.name for each in others[:5])}," if others else ""
            raise InvalidField(
                "duration_seconds",
                f"makes windows{beside} that leave less than {LEAST_OPEN:.0%} of the time open, as if it was"
                " always on: give fewer or shorter ones, or pause what is not to be sent",
            )

    @property
    def since(self) -> datetime:
        """From when on its windows count."""
        return self.created_at - self.duration - _BEFORE

    def fault(self, at: datetime) -> str | None:
        """Why its stored trigger cannot be evaluated at `at`; None if it can."""
        try:
            self.window(at)
        except Exception as error:  # a rule edited by hand may cause any error
            return f"its trigger cannot be evaluated: {type(error).__name__}: {error}"[:300]
        return None

    def window(self, at: datetime) -> tuple[datetime, datetime] | None:
        """The beginning and the end of the latest window that covers `at`; None outside of them."""
        recurrence = self.trigger.recurrence(self.since)
        starts = recurrence.between(at - self.duration + _TICK, at + _TICK, limit=_MOST_AT_ONCE)
        return (starts[-1], starts[-1] + self.duration) if starts else None

    def windows(self, since: datetime, until: datetime, *, limit: int) -> list[tuple[datetime, datetime]]:
        """The first `limit` of those that cover some of the time."""
        starts = self.trigger.recurrence(self.since).between(
            since - self.duration + _TICK, until, limit=limit
        )
        return [(start, start + self.duration) for start in starts]

    def next_start(self, after: datetime) -> datetime | None:
        """When the next window begins."""
        return self.trigger.recurrence(self.since).after(after)


def end_of(blackouts: Sequence[Blackout], at: datetime) -> datetime | None:
    """The first instant from `at` on that none of the blackouts covers; None if that is not found."""
    end = at
    for _ in range(MAX_CHAIN):
        ends = [window[1] for each in blackouts if (window := _sound_window(each, end)) is not None]
        if not ends:
            return end
        end = max(ends)
    return None


def begin_of(blackouts: Sequence[Blackout], at: datetime) -> datetime:
    """The last instant up to `at` from which on they cover all of the time up to it."""
    begin = at
    for _ in range(MAX_CHAIN):
        windows = [_sound_window(each, begin - _TICK) for each in blackouts]
        earliest = min((window[0] for window in windows if window is not None), default=begin)
        if earliest >= begin:
            break
        begin = earliest
    return begin


def _open_share(blackouts: Sequence[Blackout], begins: datetime) -> float:
    """The share of the time from `begins` on that none of the blackouts covers, as far as `MAX_CHAIN` windows
    and `_LOOKED_AHEAD` tell. Where clocks go back, a window of each whole day leaves an hour open once a
    year."""
    at, left_open = begins, timedelta(0)
    for _ in range(MAX_CHAIN):
        ends = max((window[1] for each in blackouts if (window := each.window(at)) is not None), default=at)
        if ends > at:
            at = ends
            continue
        starts = [start for each in blackouts if (start := each.next_start(at)) is not None]
        if not starts:
            return 1.0
        left_open += min(starts) - at
        at = min(starts)
        if at - begins > _LOOKED_AHEAD:
            break
    return left_open / (at - begins)


@dataclass(frozen=True, slots=True)
class Cover:
    """What blackouts say of an event at an instant that they cover."""

    ends: datetime
    """When none of them covers it any more."""
    name: str
    given_at: datetime
    """When that one was given."""
    skips_from: datetime | None
    """The beginning of a window that is to be skipped: occurrences from there on are. None: none are."""

    def skips(self, run_time: datetime) -> bool:
        """Whether an occurrence of then is skipped, and not postponed."""
        return self.skips_from is not None and run_time >= self.skips_from

    @property
    def skipped_line(self) -> str:
        return (
            f"Skipped: it falls into the blackout {self.name}, which lasts until {shown_instant(self.ends)}"
        )

    @property
    def postponed_line(self) -> str:
        return f"Postponed to {shown_instant(self.ends)}: the blackout {self.name} lasts until then"


@dataclass(frozen=True)
class Blackouts:
    """All that there are, as a process knows them. What they say of a second is computed once."""

    all: tuple[Blackout, ...] = ()
    _active: dict[int, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)
    _covers: dict[tuple[int, tuple[int, ...]], Cover] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def skipping(self) -> "Blackouts":
        """Those whose policy is to skip."""
        return Blackouts(tuple(each for each in self.all if each.policy == "skip"))

    def __bool__(self) -> bool:
        return bool(self.all)

    def __str__(self) -> str:
        return ", ".join(each.name for each in self.all) or "none"

    def active(self, at: datetime) -> tuple[int, ...]:
        """The places of those that cover the second of `at`. One that can no longer be evaluated covers
        nothing."""
        second = int(at.timestamp())
        found = self._active.get(second)
        if found is None:
            found = tuple(place for place, each in enumerate(self.all) if _sound_window(each, at))
            _keep(self._active, second, found)
        return found

    def covering(
        self,
        at: datetime,
        event_id: str,
        schedule_id: str,
        tags: Collection[str],
        destination: str | None,
    ) -> Cover | None:
        """What they say of an event at `at`; `destination` is its destination's own id. None: it is sent."""
        active = self.active(at)
        if not active:
            return None
        targets = Target.asked(tenant_of(event_id), schedule_id, tags, destination)
        its_own = tuple(place for place, each in enumerate(self.all) if each.target in targets)
        if not any(place in active for place in its_own):
            return None
        key = int(at.timestamp()), its_own
        found = self._covers.get(key)
        if found is None:
            found = self._cover(at, its_own, active)
            _keep(self._covers, key, found)
        return found

    def _cover(self, at: datetime, its_own: tuple[int, ...], active: tuple[int, ...]) -> Cover:
        now = [self.all[place] for place in its_own if place in active]
        skipping = [each for each in now if each.policy == "skip"]
        window = skipping[0].window(at) if skipping else None
        return Cover(
            ends=end_of([self.all[place] for place in its_own], at) or at + _LOOKED_AT_AGAIN,
            name=(skipping or now)[0].name,
            given_at=(skipping or now)[0].created_at,
            skips_from=window[0] if window else None,
        )


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def _keep(known: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    if len(known) >= _KEPT:
        known.clear()
    known[key] = value


def _sound_window(blackout: Blackout, at: datetime) -> tuple[datetime, datetime] | None:
    """Its window at `at`; none of one whose stored rule somebody bent: it harms no other. Whoever reads
    blackouts from the store learns of it by `fault`."""
    try:
        return blackout.window(at)
    except Exception:  # any error may come of such a rule
        return None


#: Windows of one blackout that are looked at; those beyond are left out.
MAX_WINDOWS = 10_000


class TimeSpans:
    """Stretches of time that do not touch, in their order."""

    def __init__(self, windows: Iterable[tuple[datetime, datetime]] = ()) -> None:
        self._begins: list[datetime] = []
        self._ends: list[datetime] = []
        for begins, ends in sorted(windows):
            if self._ends and begins <= self._ends[-1]:
                self._ends[-1] = max(ends, self._ends[-1])
            else:
                self._begins.append(begins)
                self._ends.append(ends)

    def around(self, at: datetime) -> tuple[datetime, datetime] | None:
        """The stretch that covers `at`."""
        place = bisect_right(self._begins, at) - 1
        covered = place >= 0 and at < self._ends[place]
        return (self._begins[place], self._ends[place]) if covered else None


@dataclass(frozen=True, slots=True)
class BlackoutOutlook:
    """What the blackouts of one callback say of the time that is looked at."""

    closed: TimeSpans
    skipping: TimeSpans
    """Those of the windows whose occurrences are skipped."""

    def sent_at(self, run_time: datetime | None, due: datetime) -> datetime | None:
        """When a callback that falls due then is sent; None for an occurrence that is skipped. `run_time` is
        None for what is never skipped: a retry, a call by hand, a message."""
        within = self.closed.around(due)
        if within is None:
            return due
        skips = None if run_time is None else self.skipping.around(due)
        return None if skips is not None and run_time is not None and run_time >= skips[0] else within[1]


@dataclass
class BlackoutOutlooks:
    """Those of all callbacks from `since` to `until`."""

    blackouts: Blackouts
    since: datetime
    until: datetime
    left_out: set[str] = field(default_factory=set)
    """Names of blackouts with more than `MAX_WINDOWS` windows: those beyond are not looked at."""
    _windows: dict[int, list[tuple[datetime, datetime]]] = field(default_factory=dict)
    _known: dict[tuple[int, ...], BlackoutOutlook] = field(default_factory=dict)

    def __post_init__(self) -> None:
        #: What fell due from then on may be sent at `since` or later.
        self.begins = begin_of(self.blackouts.all, self.since)

    def __bool__(self) -> bool:
        return bool(self.blackouts)

    def of(
        self, tenant: str, schedule_id: str, tags: Collection[str], destination: str | None
    ) -> BlackoutOutlook | None:
        """None if no blackout is of it. `schedule_id` (empty for a message) and `destination` are own
        ids."""
        targets = Target.asked(tenant, schedule_id, tags, destination)
        own = tuple(place for place, each in enumerate(self.blackouts.all) if each.target in targets)
        if not own:
            return None
        if own not in self._known:
            skipping = [place for place in own if self.blackouts.all[place].policy == "skip"]
            self._known[own] = BlackoutOutlook(
                TimeSpans(window for place in own for window in self._of(place)),
                TimeSpans(window for place in skipping for window in self._of(place)),
            )
        return self._known[own]

    def _of(self, place: int) -> list[tuple[datetime, datetime]]:
        if place not in self._windows:
            blackout = self.blackouts.all[place]
            found = blackout.windows(self.begins, self.until, limit=MAX_WINDOWS + 1)
            if len(found) > MAX_WINDOWS:
                self.left_out.add(blackout.name)
            self._windows[place] = found[:MAX_WINDOWS]
        return self._windows[place]
