"""Backfill through real processes, beside schedules that go on."""

import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests

from tests.acceptance.journal import Journal
from tests.acceptance.stack import Stack
from tests.processes import wait_until

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
#: Schedules that go on while others are backfilled.
LIVING = 20


def rule(start: datetime, frequency: str) -> str:
    return f"DTSTART:{start:%Y%m%dT%H%M%SZ}\nRRULE:FREQ={frequency}"


def backfill(stack: Stack, made: str, since: datetime, until: datetime, rate: float) -> dict[str, Any]:
    body = {"from": since.isoformat(), "to": until.isoformat(), "rate_per_second": rate}
    return stack.post(f"/schedules/{made}/backfill", body, status=202)


def progress(stack: Stack, made: str) -> dict[str, Any]:
    found: dict[str, Any] = requests.get(f"{stack.url}/api/schedules/{made}/backfill").json()
    return found


def run_times(journal: Journal, path: str) -> Counter[datetime]:
    return Counter(datetime.fromisoformat(call.run_time) for call in journal.calls[path])


def test_each_missing_occurrence_is_called_once_while_the_schedule_goes_on(
    stack: Stack, journal: Journal
) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    since, until = now - 300 * SECOND, now - 2 * SECOND
    made = stack.create(journal.url("/b"), rrule=rule(now - 3_600 * SECOND, "SECONDLY"))
    second_beat = stack.beat("beat-2")
    started = backfill(stack, made, since, until, 100)
    assert (started["state"], started["occurrences"]) == ("running", 299)
    stack.kill(second_beat)
    # The dead beat may have held a lease of 30 s.
    wait_until(lambda: progress(stack, made)["state"] == "done", "the end of the backfill")
    stack.post(f"/schedules/{made}/pause", status=200)
    wait_until(lambda: stack.events(made, "pending") == [], "what was due before the pause")
    counted = run_times(journal, "/b")
    assert {instant: counted[instant] for instant in counted if instant <= until} == {
        since + number * SECOND: 1 for number in range(299)
    }
    living = sorted(instant for instant in counted if instant > until)
    assert set(counted.values()) == {1}
    assert living == [living[0] + number * SECOND for number in range(len(living))]
    assert progress(stack, made)["completed"] == 299


def test_a_cancel_leaves_nothing(stack: Stack, journal: Journal) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    made = stack.create(journal.url("/c"), rrule=rule(now - timedelta(days=1), "MINUTELY"))
    backfill(stack, made, now - timedelta(days=1), now - 2 * MINUTE, 20)
    wait_until(lambda: len(journal.calls["/c"]) >= 20, "some of the backfill")
    cancelled = requests.delete(f"{stack.url}/api/schedules/{made}/backfill").json()
    assert cancelled["state"] == "cancelled"
    wait_until(lambda: progress(stack, made)["waiting"] == 0, "nothing to wait")
    finished = progress(stack, made)
    # A minute after its creation it is called for itself.
    backfilled = [instant for instant in run_times(journal, "/c").elements() if instant < now]
    assert len(backfilled) == finished["completed"] < 1_000
    past = [event for event in stack.events(made, "pending") if event["kind"] == "backfill"]
    assert past == []


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_month_of_a_minutely_rule_delays_none_of_the_living(
    make_stack: Callable[..., Stack], journal: Journal
) -> None:
    """p99 as without: at most twice what it was alone, or 50 ms more."""
    stack = make_stack()
    stack.all()
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    since, until = now - timedelta(days=31), now - 2 * MINUTE
    made = stack.create(journal.url("/month"), rrule=rule(since - timedelta(days=1), "MINUTELY"))
    stack.create_many(LIVING, journal.url("/living"), rrule="FREQ=SECONDLY")
    alone = lags(journal, 30)
    occurrences = backfill(stack, made, since, until, 100)["occurrences"]
    assert occurrences == 31 * 1_440 - 1
    beside = lags(journal, occurrences / 100)
    wait_until(lambda: progress(stack, made)["state"] == "done", "the end of the backfill")
    counted = run_times(journal, "/month")
    assert {instant: counted[instant] for instant in counted if instant <= until} == {
        since + number * MINUTE: 1 for number in range(occurrences)
    }
    assert set(run_times(journal, "/living").values()) == {LIVING}
    assert p99(beside) <= max(2 * p99(alone), p99(alone) + 0.05), (p99(alone), p99(beside))


def lags(journal: Journal, seconds: float) -> list[float]:
    """Of the living, for so long from now on."""
    first = len(journal.calls["/living"])
    time.sleep(seconds)  # how long is measured; nothing is waited for
    calls = journal.calls["/living"][first:]
    return [call.at - datetime.fromisoformat(call.run_time).timestamp() for call in calls]


def p99(found: list[float]) -> float:
    return sorted(found)[len(found) * 99 // 100]
