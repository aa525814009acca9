"""From a plan to RFC 5545 lines: times of day grouped, DTSTART, COUNT and UNTIL set where they are needed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final

from scheduler_app.domain.recurrence import InvalidRecurrence, Recurrence

from .meaning.outcome import Moment, Refused

#: As many as the engine takes.
MAX_RULES: Final = 16
MAX_TOTAL: Final = 1_000


@dataclass(frozen=True, slots=True)
class DayRule:
    """On which days: a frequency and its BY parts."""

    freq: str
    parts: tuple[tuple[str, str], ...] = ()

    @property
    def counts_times(self) -> bool:
        """Whether it has BYSETPOS, which would count the times of day too."""
        return any(name == "BYSETPOS" for name, _ in self.parts)

    def body(self) -> str:
        return ";".join([f"FREQ={self.freq}", *(f"{name}={value}" for name, value in self.parts)])


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that becomes a recurrence set."""

    rules: tuple[str, ...]
    """Bodies without INTERVAL, COUNT and UNTIL."""
    interval: int = 1
    excluded: tuple[str, ...] = ()
    excluded_days: tuple[date, ...] = ()
    first: datetime | None = None
    """Not before this (aware); DTSTART becomes the first occurrence from then on."""
    exact_start: datetime | None = None
    """DTSTART itself (aware), for steps of elapsed time."""
    until: datetime | None = None
    total: int | None = None
    counts_open_days: bool = False
    """Which days it names depends on a calendar: that of the first occurrence is not known here."""


def bodies(days: Iterable[DayRule], seconds: Iterable[int]) -> tuple[str, ...]:
    """One body for each day rule and each group of times of day (seconds since midnight)."""
    found = []
    wanted = sorted(set(seconds))
    grouped = _groups(wanted)
    for rule in days:
        groups = [_groups([one])[0] for one in wanted] if rule.counts_times else grouped
        found += [f"{rule.body()};{times}" for times in groups]
    if len(found) > MAX_RULES:
        raise Refused(
            "too many different times of day for one schedule; take an interval that divides an hour"
        )
    return tuple(found)


def _groups(seconds: Sequence[int]) -> list[str]:
    """BYHOUR, BYMINUTE, BYSECOND lists whose products together are exactly these times."""
    minutes: dict[tuple[int, int], list[int]] = {}
    for second in seconds:
        minutes.setdefault((second // 3_600, second % 3_600 // 60), []).append(second % 60)
    hours: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for (hour, minute), of_minute in minutes.items():
        hours.setdefault((hour, tuple(of_minute)), []).append(minute)
    groups: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
    for (hour, of_minute_), of_hour in hours.items():
        groups.setdefault((tuple(of_hour), of_minute_), []).append(hour)
    return [
        f"BYHOUR={_list(hour)};BYMINUTE={_list(minute)};BYSECOND={_list(second)}"
        for (minute, second), hour in groups.items()
    ]


def _list(values: Iterable[int]) -> str:
    return ",".join(map(str, values))


def text_of(plan: Plan, moment: Moment) -> str:
    """The lines of a plan. Raises Refused when it never fires, or when the engine refuses it."""
    try:
        lines = _lines(plan, moment)
        text = "\n".join(lines)
        if parse(text, moment).after(moment.at) is None:
            raise Refused("this never happens after now; look at the dates")
    except InvalidRecurrence as error:
        raise Refused(f"this cannot be scheduled: {error.message}") from None
    return text


def parse(text: str, moment: Moment) -> Recurrence:
    """The recurrence of a text, as the schedule would read it."""
    return Recurrence.parse(
        text, created_at=moment.at, timezone=moment.zone_name, gap=moment.gap, overlap=moment.overlap
    )


def _lines(plan: Plan, moment: Moment) -> list[str]:
    if len(plan.rules) + len(plan.excluded) > MAX_RULES:
        raise Refused("these are too many different times of day for one schedule; make several schedules")
    start = _start(plan, moment)
    head = [] if start is None else [start]
    tail = [f"EXRULE:{body}" for body in plan.excluded]
    if plan.excluded_days:
        tail.append("EXDATE;VALUE=DATE:" + ",".join(f"{day:%Y%m%d}" for day in plan.excluded_days))
    end = plan.until
    count = ""
    if plan.total is not None:
        if len(plan.rules) == 1 and not tail:
            count = f";COUNT={plan.total}"
        else:
            end = _last_of(plan, moment, head, tail)
    until = "" if end is None else f";UNTIL={end.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    step = f";INTERVAL={plan.interval}" if plan.interval > 1 else ""
    if count and until:
        raise Refused("an end and a number of times cannot both be given; give one of them")
    return [*head, *(f"RRULE:{body}{step}{count}{until}" for body in plan.rules), *tail]


def _start(plan: Plan, moment: Moment) -> str | None:
    """The DTSTART line, where the beginning matters."""
    if plan.exact_start is not None:
        return _dtstart(plan.exact_start, moment, exact=True)
    if plan.first is None and plan.interval == 1 and not moment.names_zone:
        return None
    lowest = plan.first or moment.at + timedelta(seconds=1)
    without = replace(moment, at=lowest - timedelta(seconds=1))
    # Steps are counted from the first occurrence that there would be without them. Which day that is, only a
    # calendar knows where it counts: then it is not before the first of its times of day.
    bodies_ = [
        f"FREQ=DAILY;{body[body.index('BYHOUR=') :]}" if plan.counts_open_days else body
        for body in plan.rules
    ]
    # The rule begins a day earlier: in an hour that comes twice, `lowest` has no name of its own.
    text = "\n".join([_dtstart(lowest - timedelta(days=1), moment), *(f"RRULE:{body}" for body in bodies_)])
    first = parse(text, without).after(lowest, inclusive=True)
    if first is None:
        raise Refused("this never happens; look at the dates")
    return _dtstart(first, moment)


def _dtstart(instant: datetime, moment: Moment, *, exact: bool = False) -> str:
    """The content line; `exact` for steps of elapsed time, which no wall clock moves."""
    local = instant.astimezone(moment.zone)
    # The second one of a time that exists twice has no name of its own but the one in UTC.
    if (exact and local.fold) or (moment.names_zone and moment.zone_name == "UTC"):
        return f"DTSTART:{instant.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    zone = f";TZID={moment.zone_name}" if moment.names_zone else ""
    return f"DTSTART{zone}:{local:%Y%m%dT%H%M%S}"


def dates_text(local: Sequence[datetime], moment: Moment) -> str:
    """The lines of two or more single local times (naive, in order), as `at_local_time` writes one."""
    stamps = [f"{each:%Y%m%dT%H%M%S}" for each in local]
    if not moment.names_zone:
        return f"RDATE:{','.join(stamps)}"
    if moment.zone_name == "UTC":
        return f"DTSTART:{stamps[0]}Z\nRDATE:{','.join(f'{stamp}Z' for stamp in stamps[1:])}"
    zone = f"TZID={moment.zone_name}"
    return f"DTSTART;{zone}:{stamps[0]}\nRDATE;{zone}:{','.join(stamps[1:])}"


def _last_of(plan: Plan, moment: Moment, head: list[str], tail: list[str]) -> datetime:
    """The instant of the last of `total` occurrences of several rules together."""
    total = plan.total or 1
    if total > MAX_TOTAL:
        raise Refused(
            f"at most {MAX_TOTAL} times can be counted over several times of day; give an end instead"
        )
    step = f";INTERVAL={plan.interval}" if plan.interval > 1 else ""
    recurrence = parse("\n".join([*head, *(f"RRULE:{body}{step}" for body in plan.rules), *tail]), moment)
    start = moment.at if plan.first is None else plan.first
    found = recurrence.between(start, datetime(9998, 1, 1, tzinfo=UTC), limit=total)
    if not found:
        raise Refused("this never happens; look at the dates")
    return found[-1]
