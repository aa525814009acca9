"""Partitions: 256 shares of the schedules and messages, by a hash of their ids, which beats own for seconds
at a time. An event has the partition of its schedule, or of itself if it is a message.

Ownership only spares beats reading the same twice. Whether an event is made, or sent, once does not rest on
it: that is the claims' work.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from scheduler_app.domain.ids import PARTITIONS

#: Owned like the others: what older releases have written has no partition.
UNPARTITIONED: Final = PARTITIONS


#: Says which partitions its beat owns now; None for all of them.
OwnedPartitions = Callable[[], Collection[int] | None]


def all_partitions() -> None:
    """For those who are no beat, and own nothing."""


class OwnerLease(NamedTuple):
    """What one beat owns, and until when."""

    until: datetime
    partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who owns what, as it was at `seen_at`, by MongoDB's clock."""

    version: Any
    """Counts the changes; whatever is stored, a change is written onto that."""
    seen_at: datetime
    beats: Mapping[str, OwnerLease] = field(default_factory=dict)
    epochs: Sequence[int] = (0,) * (PARTITIONS + 1)
    """How many times each partition was taken over."""

    def of(self, beat: str) -> frozenset[int]:
        known = self.beats.get(beat)
        return known.partitions if known else frozenset()

    def over(self) -> frozenset[str]:
        """The beats whose leases are over."""
        return frozenset(name for name, lease in self.beats.items() if lease.until <= self.seen_at)


def fair_share(ownership: Ownership, beat: str) -> frozenset[int]:
    """What `beat` should own now: of what it has no more than its share, and of what is free what it lacks.

    No beat takes what another one holds and may be reading: who has more than its share gives it up first.
    """
    living = sorted({beat, *ownership.beats} - (ownership.over() - {beat}))
    all_of_them = range(PARTITIONS + 1)
    least, left = divmod(len(all_of_them), len(living))
    share = least + (living.index(beat) < left)
    own = sorted(ownership.of(beat))
    if len(own) >= share:
        return frozenset(own[:share])
    taken = frozenset().union(*(ownership.of(each) for each in living))
    return frozenset([*own, *_first(share - len(own), (each for each in all_of_them if each not in taken))])


def _first(count: int, found: Iterable[int]) -> list[int]:
    return [each for each, _ in zip(found, range(count), strict=False)]
