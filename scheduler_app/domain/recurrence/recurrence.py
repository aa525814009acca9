"""A recurrence: what a schedule asks when it should fire.

A checkpoint says how many instances of each counting rule lie before an instant. A schedule stores it and
gives it back to `Recurrence.parse`. It is bound to the text, to the choices at clock changes and to the
zone data by a fingerprint, because another rule would have counted otherwise; one that does not fit is
not used, and instances are counted from DTSTART, which is slower but right.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, Literal, Self, TypeGuard

from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.recurrence.build import Built, Choices, build
from scheduler_app.domain.recurrence.occurrence import Occurrence
from scheduler_app.domain.recurrence.parsed_text import read_text, zone_named
from scheduler_app.domain.recurrence.rules.bound_rule import CountedRule, CountMark, Start
from scheduler_app.domain.recurrence.rules.days import has_day
from scheduler_app.domain.recurrence.rules.open_days import RolledSet, on_open_days
from scheduler_app.domain.recurrence.rules.recurrence_set import Observance, RecurrenceSet
from scheduler_app.domain.recurrence.timeline import (
    DAY,
    LAST_SECOND,
    ListingBudget,
    StepBudget,
    ceil_second,
    floor_second,
    local_datetime,
    require_aware,
    to_datetime,
)
from scheduler_app.domain.recurrence.warnings import Warnings, closed_day_warnings, outlook
from scheduler_app.domain.recurrence.why.reason import RecurrenceVerdict
from scheduler_app.domain.recurrence.zones import zone_data_version

#: What becomes of a local time that a clock change leaves out: later by the length of the gap, or dropped.
Gap = Literal["shift", "skip"]


_VERSION: Final = 1


def fingerprint(text: str, gap: str, overlap: str) -> str:
    """What a count depends on, as 16 hexadecimal digits."""
    return sha256("\0".join((text, gap, overlap, zone_data_version())).encode()).hexdigest()[:16]


def _is_count(value: Any) -> TypeGuard[int]:
    """A whole number of any class: beyond 32 bits MongoDB gives back a `bson.Int64`."""
    return isinstance(value, int) and not isinstance(value, bool)


MAX_RESULTS: Final = 1_000_000
_GAPS: Final = ("shift", "skip")
_OVERLAPS: Final = ("first", "last")


@dataclass(frozen=True)
class Recurrence:
    """A recurrence set (RFC 5545, 3.8.5), frozen; made by `parse`.

    `text` is canonical: DTSTART pinned, UNTIL in UTC, parts in order; two recurrences with the same text and
    choices are equal. All instants are whole seconds.

    Words about it (`description`, `why`) are imported where they are asked for: every process evaluates
    recurrences, and beats and workers say nothing of them.
    """

    text: str
    timezone: str
    gap: str
    overlap: str
    _start: Start = field(compare=False, repr=False)
    _set: RecurrenceSet = field(compare=False, repr=False)
    _warnings: Warnings = field(compare=False, repr=False)
    observed: Observance | None = None
    _observing: RecurrenceSet | RolledSet | None = field(default=None, compare=False, repr=False)

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        created_at: datetime,
        timezone: str | None = None,
        gap: str = "shift",
        overlap: str = "first",
        start_implied: bool = False,
        stored: bool = False,
        checkpoint: dict[str, Any] | None = None,
    ) -> Self:
        """The recurrence that content lines or a bare `FREQ=…` describe; else InvalidRecurrence.

        A missing DTSTART is the next whole second after `created_at`; a floating one is read in `timezone`
        (an IANA name, UTC by default). `gap` is "shift" or "skip": what becomes of a wall-clock time that
        does not exist. `overlap` is "first" or "last": which one of a time that exists twice. With
        `start_implied` the text is a canonical one whose DTSTART nobody asked for: no warning speaks of it.
        `stored` tells that the text was canonical when an earlier release or this one pinned it: it keeps the
        occurrences that it had then. `checkpoint` is what `checkpoint()` of this recurrence gave earlier.
        """
        now = floor_second(require_aware(created_at, "created_at")) + 1
        _check_choice("gap", gap, _GAPS)
        _check_choice("overlap", overlap, _OVERLAPS)
        written = read_text(text)
        steps = StepBudget(parsing=True)
        choices = Choices(zone_named("timezone", timezone or "UTC"), gap == "skip", overlap == "last")
        built = build(written, choices, now, steps, stored=stored)
        if checkpoint is not None:
            _use_checkpoint(built, checkpoint, gap, overlap)
        notes = list(built.notes)
        if timezone is not None and choices.zone is not built.start.zone:
            own, given = built.start.zone.name, choices.zone.name
            what = "Z" if own == "UTC" else "TZID"
            notes.append(
                f"DTSTART is in {own}, so the schedule's timezone {given} is not used; "
                f"leave out the {what} to use it."
            )
        asked_for = built.explicit_start and not start_implied
        seen = Warnings(built, asked_for, now - 1, outlook(built, now - 1, steps), tuple(notes))
        return cls(built.text, built.start.zone.name, gap, overlap, built.start, built.set, seen)

    def observing(self, observed: Observance) -> Self:
        """This recurrence with a calendar: occurrences on its closed days are dropped or moved.

        They are counted, ended and excluded before that: COUNT, UNTIL and EXDATE mean the rule's own days.
        With "uncounted" the rule's own days are open ones alone.
        """
        of: RecurrenceSet | RolledSet
        if observed.on_holiday == "skip":
            of = replace(self._set, closed=observed.closed)
        elif observed.on_holiday == "uncounted":
            of = replace(on_open_days(self._set, observed), closed=observed.closed)
        else:
            of = RolledSet(self._set, self._start, observed.closed, observed.on_holiday == "next")
        return replace(self, observed=observed, _observing=of)

    @property
    def _fires(self) -> RecurrenceSet | RolledSet:
        return self._set if self._observing is None else self._observing

    @property
    def dtstart(self) -> datetime:
        """DTSTART in its zone, aware."""
        fold = int(self._start.last_in_overlap)
        return local_datetime(self._start.local, self._start.zone.info, fold)

    @property
    def is_once(self) -> bool:
        """Whether it is one date and has no rules: DTSTART is its only occurrence."""
        return not self._set.rules and self._set.dates == (self._start.instant,)

    @property
    def description(self) -> str:
        """The recurrence in plain English; a rule without words for it is quoted."""
        from scheduler_app.domain.recurrence.description.sentences import describe

        # A DTSTART that was not given is the second after the creation.
        later = self._start.instant > self._warnings.now + 1
        written = describe(self._set, self._start, later)
        return written if self.observed is None else f"{written}, {self.observed.words}"

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What may surprise the person who wrote it, seen from the time of creation, and what to do."""
        if self.observed is None:
            return self._warnings.sentences()
        found = self._warnings.sentences(days_known=self.observed.on_holiday != "uncounted")
        return (*found, *closed_day_warnings(self._set, self._fires, self.observed, self._warnings.now))

    def after(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """The first occurrence after an aware `instant` (or at it, if `inclusive`), in UTC; None: no more."""
        require_aware(instant, "instant")
        first = ceil_second(instant) if inclusive else floor_second(instant) + 1
        found = next(self._fires.instants(first, StepBudget()), None)
        return None if found is None else to_datetime(found)

    def between(self, start: datetime, end: datetime, limit: int | None = None) -> list[datetime]:
        """The occurrences from `start` (inclusive) to `end` (exclusive), both aware: UTC, ascending.

        At most `limit` of them. Without a limit, more than a million is an InvalidRecurrence.
        """
        return [to_datetime(second) for second in self._between(start, end, limit, None)]

    def between_and_next(
        self, start: datetime, end: datetime, limit: int
    ) -> tuple[list[datetime], datetime | None]:
        """As `between`, and the occurrence that follows those; None: no more. One search for both."""
        stop = ceil_second(require_aware(end, "end"))
        found: list[datetime] = []
        for second in self._fires.instants(ceil_second(require_aware(start, "start")), StepBudget()):
            if second >= stop or len(found) == limit:
                return found, to_datetime(second)
            found.append(to_datetime(second))
        return found, None

    def count(self, start: datetime, end: datetime) -> int:
        """How many occurrences lie from `start` (inclusive) to `end` (exclusive), both aware. Those that a
        calendar moves are counted one by one; others cost the same, however many they are. Raises
        InvalidRecurrence where there are too many to be counted so, or where it takes too many steps."""
        first = ceil_second(require_aware(start, "start"))
        stop = ceil_second(require_aware(end, "end"))
        if isinstance(self._fires, RolledSet):
            return sum(1 for _ in self._between(start, end, None, None))
        # A day is counted by its times, of which those before the start do not occur.
        whole = min(max(first, self._start.instant), max(first, stop))
        found, steps = 0, ListingBudget()
        for second in self._fires.instants(first, steps):
            if second >= whole:
                break
            found += 1
        return found + self._fires.count(whole, min(stop, LAST_SECOND), steps)

    def occurrences(self, start: datetime, end: datetime, limit: int | None = None) -> list[Occurrence]:
        """As `between`, each with its local time and what a clock change did to it."""
        shifted: set[int] = set()
        return [self._occurrence(second, shifted) for second in self._between(start, end, limit, shifted)]

    def why(self, instant: datetime) -> RecurrenceVerdict:
        """Whether it fires at an aware `instant`, and if not, the first reason of each rule.

        All of the answer costs one budget of steps. Raises InvalidRecurrence where that is too little to find
        even the occurrence after the instant.
        """
        from scheduler_app.domain.recurrence.why.set_reasons import ExplainedRecurrence, verdict

        own = self._set
        if self.observed is not None and self.observed.on_holiday == "uncounted":
            own = on_open_days(own, self.observed)
        explained = ExplainedRecurrence(own, self._fires, self._start, self.observed)
        return verdict(explained, require_aware(instant, "instant"))

    def left_out(self, start: datetime, end: datetime, limit: int) -> list[datetime]:
        """The local times from `start` up to `end` (both aware), `limit` at most, at which nothing fires
        because the calendar is closed and occurrences are skipped then."""
        if self.observed is None or self.observed.on_holiday != "skip":
            return []
        found: list[datetime] = []
        stop, zone = ceil_second(end), self._start.zone
        for second in self._set.instants(ceil_second(start), StepBudget()):
            if second >= stop or len(found) == limit:
                break
            local = second + zone.offset(second)
            if has_day(self.observed.closed.of_year, local // DAY):
                found.append(local_datetime(local, zone.info))
        return found

    def checkpoint(self, instant: datetime) -> dict[str, Any] | None:
        """What a schedule stores so that a rule with COUNT is counted on from an aware `instant`.

        A JSON and BSON value; None when no rule has a COUNT, or when the days of a calendar, which may
        change, decide what is counted.
        """
        second = ceil_second(require_aware(instant, "instant"))
        counted = _counted(self._set)
        if not counted or (self.observed is not None and self.observed.on_holiday == "uncounted"):
            return None
        if isinstance(self._observing, RolledSet):
            second = self._observing.earliest(second)
        done = [rule.done_before(second, StepBudget()) for rule in counted]
        rule = fingerprint(self.text, self.gap, self.overlap)
        return {"v": _VERSION, "rule": rule, "second": second, "done": done}

    def _between(
        self, start: datetime, end: datetime, limit: int | None, shifted: set[int] | None
    ) -> Iterator[int]:
        first = ceil_second(require_aware(start, "start"))
        stop = ceil_second(require_aware(end, "end"))
        if limit == 0:
            return
        # What is listed for a person has a bound in all: a request must not hold a thread of the API.
        steps = StepBudget() if shifted is None else ListingBudget()
        for number, second in enumerate(self._fires.instants(first, steps, shifted), 1):
            if second >= stop:
                return
            if limit is None and number > MAX_RESULTS:
                raise InvalidRecurrence(
                    "RRULE",
                    f"there are more than {MAX_RESULTS} occurrences in that time; ask for fewer with a limit",
                )
            yield second
            if number == limit:
                return

    def _occurrence(self, second: int, shifted: set[int]) -> Occurrence:
        zone = self._start.zone
        local = second + zone.offset(second)
        reading = zone.read(local)
        dst = None
        if second in shifted:
            dst = "gap_shifted"
        elif reading.kind == "overlap":
            dst = "overlap_first" if second == reading.early else "overlap_last"
        source = self._observing.source(second) if isinstance(self._observing, RolledSet) else None
        return Occurrence(
            to_datetime(second),
            local_datetime(local, zone.info, int(dst == "overlap_last")),
            dst,
            None if source is None else local_datetime(source, zone.info),
        )


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidRecurrence(name, f"{str(value)[:40]!r} is not a choice; use {' or '.join(allowed)}")


def _counted(of: RecurrenceSet) -> list[CountedRule]:
    return [rule for rule in (*of.rules, *of.exception_rules) if isinstance(rule, CountedRule)]


def _use_checkpoint(built: Built, checkpoint: dict[str, Any], gap: str, overlap: str) -> None:
    """Lets the rules count on from it; InvalidRecurrence for any other value. One of another rule
    or release is not used."""
    second, done = checkpoint.get("second"), checkpoint.get("done")
    if not (
        _is_count(second)
        and isinstance(done, list)
        and all(_is_count(number) and number >= 0 for number in done)
    ):
        raise InvalidRecurrence("checkpoint", "is not a value that `checkpoint()` made; leave it out")
    counted, rule = _counted(built.set), fingerprint(built.text, gap, overlap)
    if checkpoint.get("v") == _VERSION and checkpoint.get("rule") == rule and len(done) == len(counted):
        for each, number in zip(counted, done, strict=True):
            each.use(CountMark(second, number))
