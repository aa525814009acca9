"""Which times of day are meant: 5 alone may be 05:00 or 17:00, and "in the evening" settles it."""

from dataclasses import replace
from itertools import pairwise

from scheduler_app.domain.triggers.phrase.clauses import PartOfDay, Times, Window
from scheduler_app.domain.triggers.phrase.moments import Time

from .bag import Bag
from .outcome import Refused

#: Hours alone up to this one are as likely of the afternoon; later ones are read on the 24-hour clock.
_VAGUE = 6
_NOON = 12
_RANGES = {
    "morning": frozenset(range(12)),
    "afternoon": frozenset(range(12, 19)),
    "evening": frozenset(range(16, 24)),
    "night": frozenset((*range(18, 24), *range(6))),
}


def take_times(bag: Bag) -> tuple[Time, ...]:
    """The definite times of day of a phrase; empty when it names none."""
    asked = bag.take(Times)
    part = bag.take(PartOfDay)
    if asked is None:
        if part is not None:
            raise Refused(
                f"“{part.part}” is no time of day; say at what time, for example “at 7”", (part.part,)
            )
        return ()
    if part is not None:
        return tuple(_in_part(time, part.part) for time in asked.times)
    ways = _readings(asked.times)
    if len(ways) > 1:
        raise bag.ambiguity(
            asked,
            [[Times(way)] for way in ways],
            "an hour without am or pm can be read in two ways; say 05:00, 5am or 5pm",
            ask=False,
        )
    return ways[0]


def _in_part(time: Time, part: str) -> Time:
    hour = time.hour
    if not time.sure and hour <= _NOON:
        if part == "night":
            hour = hour + 12 if 6 <= hour < _NOON else hour % _NOON
        elif part != "morning":
            hour = hour % _NOON + 12
    if hour not in _RANGES[part] or (part == "morning" and time.hour == _NOON):
        raise Refused(f"{time.hour}:{time.minute:02} is not in the {part}; leave one of the two out")
    return replace(time, hour=hour, bare=False)


def _definite(time: Time, *, later: bool = False) -> Time:
    hour = time.hour % _NOON + 12 if later and time.hour < _NOON else time.hour
    return replace(time, hour=hour, bare=False, sure=True)


def _readings(times: tuple[Time, ...]) -> list[tuple[Time, ...]]:
    bare = [time for time in times if time.bare]
    as_written = tuple(_definite(time) if time.bare else time for time in times)
    if not bare or any(
        (time.hour > _NOON and not time.sure) or (time.hour == 0 and not time.sure) for time in times
    ):
        return [as_written]
    with_meridiem = [time for time in times if time.sure]
    if with_meridiem:
        later = with_meridiem[-1].hour >= _NOON
        inherited = tuple(_definite(time, later=later) if time.bare else time for time in times)
        return _distinct(as_written, inherited)
    if not any(time.hour <= _VAGUE for time in bare):
        return [as_written]
    rising = all(first.seconds < second.seconds for first, second in pairwise(times))
    shifted = tuple(
        _definite(time, later=rising or time.hour <= _VAGUE) if time.bare else time for time in times
    )
    return _distinct(as_written, shifted)


def _distinct(*ways: tuple[Time, ...]) -> list[tuple[Time, ...]]:
    found: dict[tuple[int, ...], tuple[Time, ...]] = {}
    for way in ways:
        found.setdefault(tuple(time.seconds for time in way), way)
    return list(found.values())


def take_window(bag: Bag, window: Window) -> tuple[int, int]:
    """The first and the last second of the day of a window; the last is smaller when it is after midnight."""
    ways = _windows(window.first, window.last)
    if len(ways) > 1:
        raise bag.ambiguity(
            window,
            [[Window(first, last)] for first, last in ways],
            "the hours can be read in two ways; say am or pm, or 17:00",
        )
    first, last = ways[0]
    if first.seconds == last.seconds:
        raise Refused("the two times of day are the same; give two")
    return first.seconds, last.seconds


def _windows(first: Time, last: Time) -> list[tuple[Time, Time]]:
    early, late = _definite(first), _definite(last)
    afternoon, evening = _definite(first, later=True), _definite(last, later=True)
    if first.bare and last.sure:
        same_half = afternoon if last.hour >= _NOON else early
        if same_half.seconds >= last.seconds or same_half == early:
            return [(early, late)]
        return [(same_half, late)] if first.hour <= _VAGUE else [(early, late), (same_half, late)]
    if last.bare and first.sure:
        after = [end for end in (late, evening) if end.seconds > first.seconds]
        return [(early, end) for end in dict.fromkeys(after)] or [(early, late)]
    if first.bare and last.bare:
        if last.seconds <= first.seconds:
            return [(early, evening), (afternoon, late)]
        return [(early, late), (afternoon, evening)] if first.hour <= _VAGUE else [(early, late)]
    if last.seconds < first.seconds < _NOON * 3_600 and not last.sure:
        return [(early, evening), (early, late)]
    return [(early, late)]
