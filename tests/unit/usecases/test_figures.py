"""The figures of the last hour, of outcomes that are known."""

from datetime import UTC, datetime, timedelta

from scheduler_app.domain.states import State
from scheduler_app.store.events.figures import EventSummary
from scheduler_app.usecases.questions.figures import figures_of

NOW = datetime(2030, 1, 5, 12, 30, 30, tzinfo=UTC)


def outcome(seconds_ago: float, lag_ms: float | None, state: State = State.COMPLETED) -> EventSummary:
    run_time = NOW - timedelta(seconds=seconds_ago)
    return EventSummary(f"e{seconds_ago}", "s", run_time, state, lag_ms, 5.0, 200)


def test_lag_throughput_and_outcomes_of_an_hour() -> None:
    outcomes = [outcome(each, float(each)) for each in range(1, 101)]
    outcomes.append(outcome(3_000, None, State.ERROR))
    found = figures_of(outcomes, NOW)
    assert (found.lag_p50_ms, found.lag_p99_ms) == (51.0, 100.0)
    assert found.outcomes == {"completed": 100, "error": 1}
    assert (found.complete, found.since) == (True, NOW - timedelta(hours=1))
    assert found.a_minute == 101 / 60
    assert sum(sum(each.counts.values()) for each in found.minutes) == 101
    assert [each.begin.minute for each in found.minutes[:2]] == [30, 31], "empty minutes are there too"


def test_nothing_has_happened() -> None:
    found = figures_of([], NOW)
    assert (found.count, found.lag_p99_ms, found.a_minute) == (0, None, 0)


def test_of_too_many_events_the_figures_say_since_when_they_are() -> None:
    found = figures_of([outcome(each, 1.0) for each in range(1, 11)], NOW, most=10)
    assert (found.complete, found.since) == (False, NOW - timedelta(seconds=10))
    assert found.a_minute == 60
