"""The times of day of a rule: BYHOUR × BYMINUTE × BYSECOND, in order, as seconds of the day."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

_KEPT = 1440


def times_of_day(hours: tuple[int, ...], minutes: tuple[int, ...], seconds: tuple[int, ...]) -> Sequence[int]:
    """All the combinations in ascending order; computed when asked for where there are very many (86,400)."""
    product = _Product(hours, minutes, seconds)
    return tuple(product) if len(product) <= _KEPT else product


def first_from(times: Sequence[int], second: int) -> int:
    """The index of the first time that is not before `second` of the day."""
    return bisect_left(times, second)


@dataclass(frozen=True)
class _Product(Sequence[int]):
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.hours) * len(self.minutes) * len(self.seconds)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        rest, second = divmod(index, len(self.seconds))
        hour, minute = divmod(rest, len(self.minutes))
        return self.hours[hour] * 3600 + self.minutes[minute] * 60 + self.seconds[second]
