"""What is told of outcomes is bounded: lines, origins, schedules that wait for their last run."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from pymongo.errors import AutoReconnect
from structlog.testing import capture_logs

from scheduler_app.clock import monotonic
from scheduler_app.domain.states import State
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.store.schedules.last_runs import RunResult
from scheduler_app.telemetry import metrics
from scheduler_app.telemetry.logs import UnexpectedErrors
from scheduler_app.worker import reports
from scheduler_app.worker.reports import (
    LINES,
    LINES_OF_ORIGIN,
    WINDOW_SECONDS,
    FailedSchedules,
    FailureLog,
    LastRunQueue,
    OriginCounts,
)
from tests.builders import event, message

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def record(
    schedule_id: str = "s1",
    state: State = State.RETRYING,
    *,
    second: int = 0,
    origin: str = "https://a.test:443",
    status: int | None = 503,
    error: str | None = None,
) -> OutcomeRecord:
    made = event(NOON + second * SECOND, schedule_id)
    due_at = NOON + 60 * SECOND if state is State.RETRYING else None
    attempt = {"number": 2, "status_code": status, "error": error, "duration_ms": 250.0, "snippet": "secret"}
    return OutcomeRecord(
        *(made.id, "token", state, "message secret", due_at, attempt, made.run_time),
        event=made,
        origin=origin,
        attempts_allowed=4,
    )


def told(log: FailureLog, records: Sequence[OutcomeRecord], now: float = 0.0) -> list[dict[str, Any]]:
    with capture_logs() as lines:
        log.note(records, now)
    return [dict(line) for line in lines]


def test_a_failed_attempt_and_a_dead_letter_are_a_line_each() -> None:
    failed, dead = told(
        FailureLog(),
        [
            record(),
            record("s2", State.ERROR, status=None, error="timed out\x1b[31m"),
            record(state=State.COMPLETED),
        ],
    )
    assert failed["event"] == "attempt.failed"
    assert {key: failed[key] for key in ("schedule_id", "event_id", "origin", "status_code")} == {
        "schedule_id": "s1",
        "event_id": "s1-1-20260302T120000Z",
        "origin": "https://a.test:443",
        "status_code": 503,
    }
    assert (failed["attempt"], failed["attempts_allowed"]) == (2, 4)
    assert failed["next_at"] == "2026-03-02T12:01:00Z"
    assert (dead["event"], dead["error"]) == ("attempt.dead_letter", "timed out [31m")
    assert "next_at" not in dead
    assert {failed["log_level"], dead["log_level"]} == {"warning"}
    assert "secret" not in str((failed, dead))


def test_hundreds_of_failures_a_second_are_a_few_lines_and_a_count() -> None:
    log = FailureLog()
    flood = [record(f"s{number}") for number in range(600)]
    lines = [line for second in range(9) for line in told(log, flood, float(second))]
    assert len(lines) == LINES_OF_ORIGIN
    # A neighbour's failure, and a dead letter, are not lost among them.
    assert len(told(log, [record(origin="https://b.test:443")], 9.0)) == 1
    assert len(told(log, [record(state=State.ERROR)], 9.0)) == 1
    with capture_logs() as end:
        log.close_window(WINDOW_SECONDS - 0.1)
        assert end == []
        log.close_window(WINDOW_SECONDS)
    (omitted,) = end
    assert (omitted["event"], omitted["failed"]) == ("attempts.omitted", 9 * 600 - LINES_OF_ORIGIN)
    assert (omitted["dead_letters"], list(omitted["by_origin"])) == (0, ["https://a.test:443"])
    assert len(told(log, flood, 20.0)) == LINES_OF_ORIGIN, "the next window has lines of its own"


def test_a_window_s_lines_and_the_origins_that_it_counts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "ORIGINS_COUNTED", 20)
    log = FailureLog()
    flood = [record(origin=f"https://{number}.test:443") for number in range(500)]
    assert len(told(log, flood)) == LINES
    with capture_logs() as lines:
        log.close_window(float("inf"))
    (omitted,) = lines
    assert omitted["failed"] == 400
    assert len(omitted["by_origin"]) <= reports.ORIGINS_NAMED + 1
    assert sum(omitted["by_origin"].values()) == 400


def test_origins_beyond_the_first_are_counted_as_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "MAX_ORIGINS", 2)
    counts = OriginCounts()
    for name in ("a", "b", "a", "c", "d"):
        counts.note(
            [record(origin=f"https://{name}.test:443"), record(state=State.COMPLETED, origin="unknown")]
        )
    registry = CollectorRegistry()
    registry.register(counts)
    text = generate_latest(registry).decode()
    assert 'scheduler_origin_attempts_total{origin="https://a.test:443",outcome="retrying"} 2.0' in text
    assert 'scheduler_origin_attempts_total{origin="unknown",outcome="completed"} 5.0' in text
    assert 'scheduler_origin_attempts_total{origin="other",outcome="retrying"} 3.0' in text
    assert 'scheduler_origin_attempt_seconds_total{origin="other"} 0.75' in text


def unexpected() -> UnexpectedErrors:
    return UnexpectedErrors(metrics.worker_failures, "reports.failed", "A step failed", monotonic=monotonic)


class Written:
    """Keeps what is written, or refuses it; it takes the place of a MongoDB that counts."""

    def __init__(self) -> None:
        self.runs: list[list[RunResult]] = []
        self.away = False
        self.broken: str | None = None

    def write(self, runs: Sequence[RunResult]) -> None:
        if self.away:
            raise AutoReconnect("away")
        if any(run.schedule_id == self.broken for run in runs):
            raise ZeroDivisionError("a mistake of ours")
        self.runs.append(list(runs))


def test_a_schedule_s_runs_between_two_writes_are_one_write_of_the_newest() -> None:
    store = Written()
    queue = LastRunQueue(store, unexpected())  # type: ignore[arg-type]
    queue.note([record(second=3), record(second=5, state=State.COMPLETED), record(second=4), record("s2")])
    queue.write()
    ((first, second),) = store.runs
    assert (first.outcome, first.time, second.schedule_id) == (State.COMPLETED, NOON + 5 * SECOND, "s2")
    queue.write()
    assert len(store.runs) == 1, "nothing is written twice"


def test_what_mongodb_does_not_take_waits_and_no_newer_run_is_undone() -> None:
    store = Written()
    queue = LastRunQueue(store, unexpected())  # type: ignore[arg-type]
    store.away = True
    queue.note([record(second=1)])
    with pytest.raises(AutoReconnect):
        queue.write()
    queue.note([record(second=2)])
    store.away = False
    queue.write()
    assert [[run.time for run in part] for part in store.runs] == [[NOON + 2 * SECOND]]


def test_a_burst_of_schedules_is_written_in_a_bounded_time_and_share(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Written()
    queue = LastRunQueue(store, unexpected())  # type: ignore[arg-type]
    queue.note([record(f"s{number}") for number in range(1_000)])
    queue.write()
    assert [len(part) for part in store.runs] == [reports.LAST_RUNS_AT_ONCE]
    assert [run.schedule_id for run in store.runs[0][:2]] == ["s0", "s1"], "the longest-waiting first"
    monkeypatch.setattr(reports, "MAX_LAST_RUNS", 1_000)
    monkeypatch.setattr(reports, "DRAIN_SECONDS", 2)
    with capture_logs() as lines:
        queue.note([record(f"t{number}") for number in range(300)])
        queue.write()
    assert len(queue) == 500, "more than AT_ONCE where it would take too long"
    assert [(line["event"], line["count"]) for line in lines] == [("last_runs.dropped", 100)]


def failures_of(step: str) -> float:
    found = REGISTRY.get_sample_value("scheduler_worker_failures_total", {"step": step})
    return found or 0.0


def test_runs_that_cannot_be_written_at_all_hold_up_no_later_ones() -> None:
    store = Written()
    store.broken = "bent"
    queue = LastRunQueue(store, unexpected())  # type: ignore[arg-type]
    before = failures_of("last_runs")
    queue.note([record("bent"), record("s1")])
    queue.write()
    queue.note([record("s1", second=1)])
    queue.write()
    assert [[run.schedule_id for run in part] for part in store.runs] == [["s1"]]
    assert (len(queue), failures_of("last_runs") - before) == (0, 1)


def test_a_schedule_whose_failures_cannot_be_judged_is_passed_over_and_logged_once() -> None:
    judged = []

    def judge(schedule_id: str, now: datetime) -> bool:
        if schedule_id == "bent":
            raise ZeroDivisionError("a mistake of ours")
        judged.append(schedule_id)
        return False

    failures = FailedSchedules(judge, unexpected())
    before = failures_of("failure_pausing")
    with capture_logs() as lines:
        for _ in range(2):
            failures.note(
                [record(name, State.ERROR)._replace(pauses_on_failure=True) for name in ("bent", "s1")]
            )
            failures.judge(NOON)
    assert (judged, len(failures)) == (["s1", "s1"], 0)
    assert failures_of("failure_pausing") - before == 2
    assert [(line["event"], line["schedule_id"]) for line in lines] == [("reports.failed", "bent")]


def test_schedules_that_failed_are_judged_once_and_again_after_a_fault_of_the_store() -> None:
    judged: list[str] = []
    away = [True]

    def judge(schedule_id: str, now: datetime) -> bool:
        assert now == NOON
        if away[0]:
            raise AutoReconnect("connection closed")
        judged.append(schedule_id)
        return True

    failures = FailedSchedules(judge, unexpected())
    pausing = [record(name, State.ERROR)._replace(pauses_on_failure=True) for name in ("s1", "s2", "s1")]
    others = [
        record("retrying")._replace(pauses_on_failure=True),
        record("never", State.ERROR),
        record("nobody", State.ERROR)._replace(pauses_on_failure=True, event=None),
    ]
    failures.note([*pausing, *others])
    assert len(failures) == 2
    with pytest.raises(AutoReconnect):
        failures.judge(NOON)
    assert len(failures) == 2
    away[0] = False
    failures.judge(NOON)
    assert (sorted(judged), len(failures)) == (["s1", "s2"], 0)


def test_in_one_turn_a_bounded_number_of_schedules_is_judged_and_a_bounded_number_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scheduler_app.worker.reports.MAX_FAILED_SCHEDULES", 120)
    judged: list[str] = []

    def judge(schedule_id: str, now: datetime) -> bool:
        judged.append(schedule_id)
        return True

    failures = FailedSchedules(judge, unexpected())
    failed = [record(f"s{number}", State.ERROR)._replace(pauses_on_failure=True) for number in range(130)]
    failures.note(failed)
    assert len(failures) == 120
    for turn in (50, 100, 120):
        failures.judge(NOON)
        assert len(judged) == turn
    nobody = FailedSchedules(None, unexpected())
    nobody.note(failed[:1])
    nobody.judge(NOON)
    assert len(nobody) == 1


def test_a_window_of_lines_begins_with_its_first_failure_and_each_one_has_all_its_lines() -> None:
    log = FailureLog()
    assert told(log, [record(state=State.COMPLETED)], 0.0) == []
    origins = [f"https://{number}.test:443" for number in range(LINES // LINES_OF_ORIGIN)]
    flood = [record(origin=each) for each in origins for _ in range(LINES_OF_ORIGIN + 1)]
    for began in (9.0, 9.0 + WINDOW_SECONDS):
        lines = told(log, flood, began)
        assert [line["event"] for line in lines].count("attempt.failed") == LINES
        assert told(log, flood, began + WINDOW_SECONDS - 0.5) == [], "the window is not over"


def test_the_origins_of_what_is_not_told_are_counted_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "ORIGINS_COUNTED", 2)
    monkeypatch.setattr(reports, "LINES", 0)
    log = FailureLog()
    assert told(log, [record(origin=name) for name in ("a", "b", "c", "a", "d")]) == []
    assert [(origin, count) for (_, origin), count in log._omitted.items()] == [
        ("a", 2),
        ("b", 1),
        (reports.OTHER, 2),
    ]


def test_a_turn_writes_its_share_in_parts_and_tells_of_what_it_dropped_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reports, "LAST_RUNS_AT_ONCE", 2)
    monkeypatch.setattr(reports, "DRAIN_SECONDS", 2)
    monkeypatch.setattr(reports, "MAX_LAST_RUNS", 10)
    store = Written()
    queue = LastRunQueue(store, unexpected())  # type: ignore[arg-type]
    with capture_logs() as lines:
        queue.note([record(f"s{number}") for number in range(11)])
        queue.write()
        queue.write()
    assert [len(part) for part in store.runs] == [2, 2, 1, 2]
    assert [line["count"] for line in lines] == [1]


def test_of_an_attempt_that_was_not_made_no_time_is_counted() -> None:
    counts, made = OriginCounts(), record(state=State.ERROR)
    counts.note([made._replace(attempt={"number": 1})])
    assert counts._seconds == {made.origin: 0.0}


def test_of_the_origins_of_what_is_not_told_the_most_frequent_ones_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reports, "ORIGINS_NAMED", 2)
    monkeypatch.setattr(reports, "LINES", 0)
    log = FailureLog()
    told(log, [record(origin=name) for name in ("a", "b", "c", "d", "b", "a", "a")])
    with capture_logs() as lines:
        log.close_window(float("inf"))
    assert [line["by_origin"] for line in lines] == [{"a": 3, "b": 2, reports.OTHER: 2}]


def test_what_belongs_to_no_schedule_is_the_last_run_of_none() -> None:
    queue = LastRunQueue(Written(), unexpected())  # type: ignore[arg-type]
    queue.note([record()._replace(event=message(NOON)), record()._replace(event=None)])
    assert len(queue) == 0
