"""Partitions: what has which, and how beats share them out."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.ids import PARTITIONS, partition_of
from scheduler_app.domain.partitions import (
    UNPARTITIONED,
    OwnerLease,
    Ownership,
    fair_share,
)
from tests.builders import event

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ALL = frozenset(range(PARTITIONS + 1))


def owned(**beats: frozenset[int]) -> Ownership:
    """Beats whose names begin with `dead` have no lease any more."""
    leases = {
        name: OwnerLease(NOW - timedelta(seconds=1) * (1 if name.startswith("dead") else -1), partitions)
        for name, partitions in beats.items()
    }
    return Ownership(version=1, seen_at=NOW, beats=leases)


def settled(*names: str, start: Ownership | None = None) -> dict[str, frozenset[int]]:
    """What the beats own when each has looked three times."""
    now = dict((start or owned()).beats)
    for _ in range(3):
        for name in names:
            seen = Ownership(1, NOW, now)
            now = {each: lease for each, lease in now.items() if each not in seen.over() - {name}}
            now[name] = OwnerLease(NOW + timedelta(seconds=1), fair_share(seen, name))
    return {name: lease.partitions for name, lease in now.items()}


def test_an_event_has_the_partition_of_its_schedule_and_stored_ones_never_change() -> None:
    made = event(NOW, "report")
    assert made.partition == partition_of("report") == 233
    assert partition_of("acme:report") == 24


def test_ids_spread_over_all_partitions() -> None:
    counts = [0] * PARTITIONS
    for number in range(PARTITIONS * 100):
        counts[partition_of(f"schedule-{number}")] += 1
    assert min(counts) > 50
    assert max(counts) < 160


def test_a_beat_alone_owns_everything() -> None:
    assert fair_share(owned(), "a") == ALL


@pytest.mark.parametrize("count", [2, 3, 4, 7, 300])
def test_beats_share_everything_with_one_partition_more_or_less(count: int) -> None:
    found = settled(*(f"beat{number}" for number in range(count)))
    sizes = sorted(map(len, found.values()))
    assert sizes[-1] - sizes[0] <= 1
    assert frozenset().union(*found.values()) == ALL
    assert sum(sizes) == len(ALL)


def test_a_beat_takes_nothing_that_another_one_still_holds() -> None:
    assert fair_share(owned(a=ALL), "b") == frozenset()
    assert len(fair_share(owned(a=ALL, b=frozenset()), "a")) == 129


def test_what_a_dead_beat_owned_is_free() -> None:
    half = frozenset(range(128))
    assert fair_share(owned(dead=half, b=ALL - half), "b") == ALL


def test_a_beat_whose_own_lease_is_over_keeps_what_nobody_took() -> None:
    assert fair_share(owned(dead=ALL), "dead") == ALL


def test_a_share_changes_by_no_more_than_it_must() -> None:
    before = settled("a", "b", "c")
    after = settled("a", "b", "c", "d", start=Ownership(1, NOW, settled_leases(before)))
    for name, had in before.items():
        assert after[name] <= had
    assert UNPARTITIONED in frozenset().union(*after.values())


def settled_leases(shares: dict[str, frozenset[int]]) -> dict[str, OwnerLease]:
    return {name: OwnerLease(NOW + timedelta(seconds=1), share) for name, share in shares.items()}
