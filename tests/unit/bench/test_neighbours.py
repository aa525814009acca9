"""What `neighbours` says of its victims: what never came must not look punctual, and nothing may be lost."""

import socket
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests

from tests.bench.arrivals import Arrival, watched
from tests.bench.half_open import HalfOpenConnections
from tests.bench.neighbours import harmless, judged_by_phase, summary
from tests.bench.receiver import receiver
from tests.builders import event
from tests.processes import wait_until

DUE = 1_795_262_400.0
BEGIN = datetime.fromtimestamp(DUE + 10, UTC)


def arrival(key: str, late_ms: float) -> Arrival:
    return Arrival(DUE + late_ms / 1000, key, DUE)


def test_what_has_not_come_is_as_late_as_it_was_waited_for() -> None:
    seen = watched({"came": DUE, "missing": DUE}, [arrival("came", 5)], until=DUE + 60)
    assert (seen["arrived"], seen["missing"]) == (1, 1)
    assert seen["lag_ms"]["max"] == 60_000


def test_the_first_of_two_arrivals_counts_and_the_second_is_told() -> None:
    seen = watched({"a": DUE}, [arrival("a", 900), arrival("a", 5), arrival("other", 1)], until=DUE + 60)
    assert seen["twice"] == 1
    assert seen["lag_ms"]["max"] == pytest.approx(5, abs=0.01)


def by_phase(disturbed_late_ms: float, *, let_loose_for: float = 0) -> dict[str, Any]:
    """20 s of a victim a second, half of it disturbed; each undisturbed one is 10 ms late."""
    victims = [event(datetime.fromtimestamp(DUE + second, UTC), "victim") for second in range(20)]
    arrivals = [
        Arrival(
            victim.due_at.timestamp() + (10 if victim.due_at < BEGIN else disturbed_late_ms) / 1000,
            victim.id,
            victim.due_at.timestamp(),
        )
        for victim in victims
    ]
    judged_from = BEGIN + timedelta(seconds=let_loose_for)
    return judged_by_phase(victims, arrivals, BEGIN, judged_from, BEGIN + timedelta(seconds=30))


@pytest.mark.parametrize(("late_ms", "met"), [(15, True), (49, True), (51, False), (5_000, False)])
def test_a_victim_may_be_twice_as_late_as_before_or_fifty_ms(late_ms: float, met: bool) -> None:
    row = by_phase(late_ms)
    assert row["met"] is met
    assert row["p99_ratio"] == pytest.approx(late_ms / 10, rel=0.01)
    assert row["of_allowed"] == pytest.approx(late_ms / 50, rel=0.03)


def test_victims_due_while_the_neighbour_is_let_loose_are_counted_apart() -> None:
    row = by_phase(5_000, let_loose_for=3)
    assert [row[phase]["events"] for phase in ("undisturbed", "unjudged", "disturbed")] == [10, 3, 7]


def run(**states: dict[str, int]) -> dict[str, Any]:
    """A run of 20 victims, of which none is missing, and of 5 other events."""
    found = {"victims": {"completed": 20}, "others": {"running": 5}} | states
    return {
        **by_phase(15),
        "states": found,
        "planted": {"victims": 20, "others": 5},
        "memory_mib": {"worker1": {"start": 90, "middle": 95, "end": 99, "growth": 3}},
        "waiting": {"held": 0, "worker_us_per_s_each": 0.0},
    }


def test_a_run_in_which_others_hang_for_ever_is_a_good_one() -> None:
    assert harmless(run())


@pytest.mark.parametrize(
    "states",
    [
        pytest.param({"victims": {"completed": 19}}, id="a victim is in no state"),
        pytest.param({"others": {"running": 4}}, id="another event is in no state"),
    ],
)
def test_a_run_that_lost_an_event_is_none(states: dict[str, dict[str, int]]) -> None:
    assert not harmless(run(**states))


def test_a_victim_that_is_finished_and_never_came_is_lost() -> None:
    row = run()
    row["disturbed"] = {**row["disturbed"], "missing": 1}
    assert not harmless(row)
    row["states"] = {"victims": {"completed": 19, "retrying": 1}, "others": {"running": 5}}
    assert harmless(row)


def test_the_summary_tells_the_worst_of_all_cases() -> None:
    good, bad = run(), {**run(), **by_phase(5_000)}
    bad["waiting"] = {"worker_us_per_s_each": 7.0}
    told = summary(["good", "bad"], [good, bad])
    assert told["unmet"] == ["bad"]
    assert told["of_allowed_max"] == pytest.approx(100, rel=0.01)
    assert (told["growth_mib_max"], told["waiting_us_per_s_each_max"]) == (3, 7.0)


def test_the_receiver_stays_silent_or_drips_at_each_of_its_origins() -> None:
    with receiver(ports=2) as hanging, requests.Session() as session:
        assert hanging.url(0) != hanging.url(1) == hanging.url(3)
        with pytest.raises(requests.ReadTimeout):
            requests.post(f"{hanging.url(1)}silent", timeout=0.2)
        with session.post(f"{hanging.url()}drip", stream=True) as answer:
            assert answer.status_code == 200
            assert hanging.held() >= 1
            assert answer.raw.read(1) == b"."
        wait_until(lambda: hanging.held() == 0, "the connections to be seen as closed")
        assert requests.post(hanging.url()).text == "ok"


def test_half_open_connections_are_opened_again_when_the_server_ends_them() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        half_open = HalfOpenConnections(f"http://127.0.0.1:{server.getsockname()[1]}", 3)
        with half_open:
            for _ in range(6):
                server.accept()[0].close()
    assert half_open.opened >= 6
