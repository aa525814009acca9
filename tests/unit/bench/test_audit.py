"""What a benchmark says of its own run: losing or doubling a callback must not pass for speed."""

import pytest

from tests.bench.arrivals import Arrival, complete, judged

DUE = 1_795_262_400.0


def arrival(key: str, late_ms: float) -> Arrival:
    return Arrival(DUE + late_ms / 1000, key, DUE)


def row(*arrivals: Arrival) -> dict[str, object]:
    return {**judged(arrivals, 2), "completed": 2}


def test_throughput_and_lag_run_from_the_due_time_to_the_last_arrival() -> None:
    judgement = row(arrival("a", 10), arrival("b", 500))
    assert judgement["throughput_per_s"] == 4
    assert judgement["last_ms"] == 500
    assert judgement["lag_ms"] == pytest.approx({"p50": 10, "p99": 10, "max": 500}, abs=0.01)
    assert complete(judgement)


@pytest.mark.parametrize(
    "arrivals",
    [
        pytest.param([arrival("a", 1)], id="one is missing"),
        pytest.param([arrival("a", 1), arrival("b", 2), arrival("b", 3)], id="one came twice"),
        pytest.param([arrival("a", 1), arrival("b", -2)], id="one came early"),
    ],
)
def test_a_run_that_lost_doubled_or_hurried_is_no_good_run(arrivals: list[Arrival]) -> None:
    assert not complete(row(*arrivals))


def test_an_event_that_arrived_and_is_not_recorded_spoils_the_run() -> None:
    assert not complete(row(arrival("a", 1), arrival("b", 2)) | {"completed": 1})
