"""How two lists of occurrences differ: what is added, removed and moved."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Of a schedule, the most occurrences that are compared.
MOST = 1_000


@dataclass(frozen=True, slots=True)
class Difference:
    """Occurrences by their local times."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    """From, to: the only one of its local day that is gone, and the only one that has come."""
    cut_short: bool = False
    """There are more than `MOST`: only the days that the first of them fill were compared."""


def difference(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> Difference:
    """Compares occurrences by their instants. Where a list is full, only the days before its last one are
    compared: what is not in the rest of that day may have moved within it."""
    old, new = _by_time(before), _by_time(after)
    full = [times[max(times)][:10] for times in (old, new) if len(times) >= MOST]
    if full:
        day = min(full)
        old = {time: local for time, local in old.items() if local[:10] < day}
        new = {time: local for time, local in new.items() if local[:10] < day}
    gone = [old[time] for time in sorted(old.keys() - new.keys())]
    come = [new[time] for time in sorted(new.keys() - old.keys())]
    gone_days, come_days = _by_day(gone), _by_day(come)
    moved = tuple(
        (times[0], come_days[day][0])
        for day, times in gone_days.items()
        if len(times) == len(come_days.get(day, ())) == 1
    )
    left, reached = {pair[0] for pair in moved}, {pair[1] for pair in moved}
    return Difference(
        added=tuple(each for each in come if each not in reached),
        removed=tuple(each for each in gone if each not in left),
        moved=moved,
        cut_short=bool(full),
    )


def _by_time(occurrences: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Local times by run times, which the API writes so that they sort as text."""
    return {str(each["run_time"]): str(each["local"]) for each in occurrences}


def _by_day(locals_: Iterable[str]) -> dict[str, list[str]]:
    days: dict[str, list[str]] = {}
    for local in locals_:
        days.setdefault(local[:10], []).append(local)
    return days
