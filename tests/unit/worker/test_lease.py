"""Until when a worker may start what it has claimed, by the monotonic time that is given."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from types import SimpleNamespace
from typing import cast

import pytest
from structlog.testing import capture_logs

from scheduler_app.store import Store
from scheduler_app.worker.attempt import Attempt
from scheduler_app.worker.attempt_maker import TimeoutLeases
from scheduler_app.worker.lease import MARGIN_SECONDS, TIMEOUT_CLASSES, Lease, Leases, timeout_class
from tests.builders import event, schedule

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
IDS = ["a", "b", "c"]


def lease(timeout_seconds: float = 10.0, asked_at: float = 100.0) -> Lease:
    return Lease("token", IDS, asked_at=asked_at, timeout_seconds=timeout_seconds)


def test_a_timeout_belongs_to_the_shortest_class_that_holds_it() -> None:
    for shorter, longer in pairwise(TIMEOUT_CLASSES):
        assert timeout_class(shorter) == shorter
        assert timeout_class(shorter + 0.1) == longer
    assert timeout_class(TIMEOUT_CLASSES[-1] + 0.5) == TIMEOUT_CLASSES[-1] + 0.5


def test_a_lease_is_as_long_as_the_timeout_and_a_margin_from_when_it_was_asked_for() -> None:
    made = lease()
    assert made.seconds == 10.0 + MARGIN_SECONDS
    end = 100.0 + made.seconds
    assert made.has_room_for(10.0, end - 10.1)
    assert not made.has_room_for(10.0, end - 10.0)


def test_what_is_settled_is_held_no_longer() -> None:
    made = lease()
    made.start("a")
    made.settle(["a", "b"])
    assert made.open() == ("c",)
    assert [made.is_lost(each) for each in IDS] == [True, True, False]


def test_a_renewal_counts_from_when_it_was_asked_for_and_finds_what_was_lost() -> None:
    made = lease()
    made.start("a")
    assert made.renewed(["c"], 200.0) == ("b",)
    # A request in flight goes on: its outcome is taken while the token stands, or as a late one.
    assert [made.is_lost(each) for each in IDS] == [False, True, False]
    assert made.has_room_for(10.0, 200.0 + MARGIN_SECONDS - 0.1)
    assert not made.has_room_for(10.0, 200.0 + MARGIN_SECONDS)
    made.settle(["a"])
    assert made.renewed(["c"], 201.0) == ()


def test_a_lease_is_renewed_while_what_is_left_may_be_too_little() -> None:
    made = lease()
    end = 100.0 + made.seconds
    # An event that has not started may need its whole timeout.
    waiting, flying = MARGIN_SECONDS / 2 + 10.0, MARGIN_SECONDS / 2
    assert not made.wants_renewal(end - waiting)
    assert made.wants_renewal(end - waiting + 0.1)
    for each in IDS:
        made.start(each)
    assert not made.wants_renewal(end - flying)
    assert made.wants_renewal(end - flying + 0.1)
    made.settle(IDS)
    assert not made.wants_renewal(end)
    beside = lease()
    beside.start("a")
    beside.settle(["a"])
    for each in ("b", "c"):
        assert beside.wants_renewal(end - waiting + 0.1), f"{each} has not started"
        beside.start(each)
    assert not beside.wants_renewal(end - waiting + 0.1)


def test_events_of_a_longer_timeout_get_a_lease_which_ends_with_the_first_until_it_is_renewed() -> None:
    made = lease()
    split = made.split(["b"], 60.0)
    assert (set(made.open()), set(split.open()), split.token) == ({"a", "c"}, {"b"}, "token")
    assert split.seconds == 60.0 + MARGIN_SECONDS
    assert split.has_room_for(10.0, 100.0 + MARGIN_SECONDS - 0.1)
    assert not split.has_room_for(10.0, 100.0 + MARGIN_SECONDS)
    assert split.renewed(["b"], 100.0) == ()
    assert split.has_room_for(60.0, 100.0 + MARGIN_SECONDS - 0.1)


@pytest.mark.parametrize("timeout_seconds", [1.0, 60.0])
def test_the_length_that_is_asked_of_mongodb_is_its_own(timeout_seconds: float) -> None:
    assert Lease.length(timeout_seconds) == lease(timeout_seconds).seconds == timeout_seconds + MARGIN_SECONDS


class Renewing:
    """Leases whose store holds all that it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], str, float]] = []
        claims = SimpleNamespace(renew=self._renew)
        self.leases = Leases(cast(Store, SimpleNamespace(claims=claims)))

    def _renew(self, ids: Sequence[str], token: str, seconds: float) -> Sequence[str]:
        self.asked.append((sorted(ids), token, seconds))
        return ids


def test_a_lease_of_which_nothing_is_held_any_more_is_forgotten() -> None:
    bench, made, over = Renewing(), lease(), lease()
    for each in (made, over):
        bench.leases.add(each)
    over.settle(IDS)
    end = 100.0 + made.seconds
    assert bench.leases.renew_due(end - MARGIN_SECONDS) == (1, 0)
    assert bench.asked == [(IDS, "token", made.seconds)]
    assert bench.leases._leases == [made]


def test_the_leases_are_looked_at_until_the_end_whatever_happens_in_one_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leases, ends, passes = Renewing().leases, iter([False, False, True]), list[float]()

    def fails(now: float) -> None:
        passes.append(now)
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr(leases, "renew_due", fails)
    monkeypatch.setattr(leases, "_ended", SimpleNamespace(wait=lambda _: next(ends)))
    with capture_logs() as lines:
        leases.run()
    assert len(passes) == 2
    assert [line["event"] for line in lines] == ["lease.failed"] * 2


def test_a_longer_timeout_has_a_lease_of_its_own_and_the_class_of_the_claim_has_none() -> None:
    bench, made = Renewing(), lease()
    attempts = [
        Attempt(event(NOON, name)._replace(id=name), schedule(NOON, name, timeout_seconds=seconds), "t", "w")
        for name, seconds in (("a", 10.0), ("b", 50.0), ("c", 5.0))
    ]
    (same, quick), (longer, slow) = TimeoutLeases(bench.leases).by_class(attempts, made)
    assert same is made
    assert ([each.event.id for each in quick], [each.event.id for each in slow]) == (["a", "c"], ["b"])
    assert longer.timeout_seconds == 60.0
    assert bench.leases._leases == [longer]
    assert bench.asked == [(["b"], "token", 60.0 + MARGIN_SECONDS)]
