"""Which periods of an elapsed rule the time of day allows, looked up instead of searched for.

While one offset lasts, the local times at which the periods begin repeat after a short cycle of periods: a
day's length divided by what it has in common with the step. One byte a period tells whether it can pass, and
finding the next one is a search for a byte. Where the step is a multiple of seven units the weekdays repeat
in the same cycle, and the table knows them too: HOURLY;INTERVAL=168;BYDAY=FR would otherwise visit every
Friday in vain.
"""

from functools import lru_cache
from math import gcd
from typing import Final, NamedTuple

from scheduler_app.domain.recurrence.timeline import DAY

_WEEK: Final = 7 * DAY
_FEW_TURNS: Final = 1024


class TimeTest(NamedTuple):
    """What a period's beginning is tested for; an empty part allows everything. `unit` in seconds."""

    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]
    weekdays: tuple[int, ...]
    unit: int


def time_table(test: TimeTest, step: int, start: int) -> bytes:
    """One byte for each period of a cycle, 1 where it can pass.

    `step` is the seconds from period to period, `start` the local second of the first. A period that
    straddles two units of the clock (after a shift of half an hour, say) can pass when either does.
    """
    table = _daily(test._replace(weekdays=()), step % DAY, start % DAY)
    return _on_weekdays(table, test, step % _WEEK, start % _WEEK) if test.weekdays else table


@lru_cache(maxsize=64)
def _daily(test: TimeTest, step: int, start: int) -> bytes:
    unit = test.unit
    allowed = _allowed(test)
    first, straddles = divmod(start, unit)
    if straddles:
        allowed = bytes(a | b for a, b in zip(allowed, allowed[1:] + allowed[:1], strict=True))
    cells = DAY // unit
    jump = step // unit
    turn = cells // gcd(jump, cells)
    if turn <= _FEW_TURNS or jump > _FEW_TURNS:
        return bytes([allowed[(first + index * jump) % cells] for index in range(turn)])
    rows: list[bytes] = []
    done = 0
    while done < turn:  # a row is what one pass over the day meets: slices are much faster than single bytes
        row = allowed[first::jump][: turn - done]
        rows.append(row)
        done += len(row)
        first = (first + len(row) * jump) % cells
    return b"".join(rows)


@lru_cache(maxsize=64)
def _on_weekdays(table: bytes, test: TimeTest, step: int, start: int) -> bytes:
    last = test.unit - 1
    weekdays = test.weekdays
    return bytes(
        allowed
        and (
            ((start + index * step) // DAY + 6) % 7 in weekdays
            or ((start + index * step + last) // DAY + 6) % 7 in weekdays
        )
        for index, allowed in enumerate(table)
    )


@lru_cache(maxsize=64)
def _allowed(test: TimeTest) -> bytes:
    """One byte for each unit of the day."""
    a_second = b"\x01"
    a_minute = _repeated(a_second, 60, test.seconds) if test.unit == 1 else a_second
    an_hour = _repeated(a_minute, 60, test.minutes) if test.unit <= 60 else a_second
    return _repeated(an_hour, 24, test.hours)


def _repeated(table: bytes, times: int, chosen: tuple[int, ...]) -> bytes:
    empty = bytes(len(table))
    return b"".join(table if not chosen or index in chosen else empty for index in range(times))
