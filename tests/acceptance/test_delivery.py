"""From a rule to a callback and its history, through every real process."""

import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
import requests

from tests.acceptance.journal import Journal
from tests.acceptance.stack import ONCE, Stack
from tests.integration.actions.receiver import hangs, says
from tests.processes import wait_until


def in_seconds(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


def instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def gaps(journal: Journal, path: str) -> list[float]:
    times = [call.at for call in journal.calls[path]]
    return [later - earlier for earlier, later in pairwise(times)]


def test_a_single_instant_fires_at_its_time(stack: Stack, journal: Journal) -> None:
    run_at = in_seconds(5)
    made = stack.create(journal.url("/once"), run_at=run_at, method="POST", body="hello")
    (event,) = stack.finished(made)
    (call,) = journal.calls["/once"]
    assert call.at >= instant(run_at)
    assert (call.seen.method, call.seen.body) == ("POST", b"hello")
    assert call.key == event["_id"] == call.seen.headers["webhook-id"]
    assert event["state"] == "completed"
    assert [line["status"] for line in event["status"]][-1] == "completed"


def test_a_rule_made_just_now_fires_from_its_first_occurrence_on(stack: Stack, journal: Journal) -> None:
    made = stack.create(journal.url("/each"), rrule="FREQ=SECONDLY")
    wait_until(lambda: len(journal.calls["/each"]) >= 3, "three calls")
    calls = tuple(journal.calls["/each"])
    for call in calls[:3]:
        assert call.at >= instant(call.run_time)
    assert len({call.key for call in calls}) == len(calls)
    # A page is short when one of its events ends while it is read.
    pending: list[dict[str, Any]] = []

    def is_full() -> bool:
        pending[:] = stack.events(made, "pending", limit=5)
        return len(pending) == 5

    wait_until(is_full, "a full page")
    assert pending == sorted(pending, key=lambda event: str(event["run_time"]))
    stack.post(f"/schedules/{made}/pause", status=200)


def test_failures_are_tried_again_with_growing_gaps_under_one_key(stack: Stack, journal: Journal) -> None:
    failing = says("500 Internal Server Error", body=b"not now")
    url = journal.script("/third", failing, failing, says())
    made = stack.create(url, rrule=ONCE, retry_backoff_seconds=1)
    (event,) = stack.finished(made)
    first, second = gaps(journal, "/third")
    # Each gap is at least the half of its delay, of 1 s and of 2 s; a slow machine makes them longer.
    assert first >= 0.5
    assert second >= 1
    assert len({call.key for call in journal.calls["/third"]}) == 1
    assert [call.seen.headers["x-scheduler-attempt"] for call in journal.calls["/third"]] == ["1", "2", "3"]
    assert event["state"] == "completed"
    assert [attempt["status_code"] for attempt in event["attempts"]] == [500, 500, 200]
    assert event["attempts"][0]["snippet"] == "not now"


def test_what_always_fails_ends_in_error_after_its_last_retry(stack: Stack, journal: Journal) -> None:
    url = journal.script("/never", says("500 Internal Server Error"))
    made = stack.create(url, rrule=ONCE, max_retries=2, retry_backoff_seconds=0.2)
    (event,) = stack.finished(made)
    assert (event["state"], event["attempt"]) == ("error", 3)
    assert len(journal.calls["/never"]) == 3


def test_a_permanent_failure_ends_at_once(stack: Stack, journal: Journal) -> None:
    made = stack.create(journal.script("/gone", says("404 Not Found")), rrule=ONCE)
    (event,) = stack.finished(made)
    assert (event["state"], event["attempt"]) == ("error", 1)
    assert "404" in event["status"][-1]["message"]


def test_a_receiver_may_ask_for_patience(stack: Stack, journal: Journal) -> None:
    url = journal.script("/busy", says("429 Too Many Requests", "Retry-After: 3"), says())
    stack.finished(stack.create(url, rrule=ONCE))
    (gap,) = gaps(journal, "/busy")
    assert gap >= 3


def test_a_receiver_that_never_answers_costs_its_timeout_and_delays_nobody(
    stack: Stack, journal: Journal
) -> None:
    due = in_seconds(8)
    url = journal.script("/hangs", hangs)
    made = stack.create_many(10, url, run_at=due, timeout_seconds=100, max_retries=0)
    impatient = stack.create(url, run_at=due, timeout_seconds=2, max_retries=0)
    quick = stack.create_many(10, journal.url("/quick"), run_at=due)
    for schedule in quick:
        stack.finished(schedule)
    # Not one of them waited for a receiver that hangs.
    assert [stack.events(schedule) for schedule in made] == [[]] * 10
    (event,) = stack.finished(impatient)
    assert event["state"] == "error"
    assert event["attempts"][0]["duration_ms"] >= 1900


def test_a_trigger_calls_at_once_whatever_the_state(stack: Stack, journal: Journal) -> None:
    made = stack.create(journal.url("/now"), rrule="DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY")
    stack.post(f"/schedules/{made}/pause", status=200)
    triggered = stack.post(f"/schedules/{made}/trigger", status=202)
    wait_until(lambda: bool(journal.calls["/now"]), "the call")
    assert journal.calls["/now"][0].key == triggered["event_id"]


def test_after_a_pause_and_a_resume_the_next_occurrence_fires(stack: Stack, journal: Journal) -> None:
    made = stack.create(journal.url("/paused"), rrule="FREQ=SECONDLY")
    wait_until(lambda: len(journal.calls["/paused"]) >= 2, "two calls")
    stack.post(f"/schedules/{made}/pause", status=200)
    paused_at = time.time()

    def due_since() -> list[float]:
        """What was due before the pause may come later."""
        times = (instant(call.run_time) for call in journal.calls["/paused"])
        return [each for each in times if each > paused_at]

    wait_until(lambda: time.time() - paused_at > 3, "some seconds to pass")
    assert due_since() == []
    asked_at = time.time()
    stack.post(f"/schedules/{made}/resume", status=200)
    resumed_at = time.time()
    # Where several are late, the first need not come first.
    wait_until(lambda: len(due_since()) > 2, "the next calls")
    assert asked_at - 0.5 < min(due_since()) < resumed_at + 1.5
    stack.post(f"/schedules/{made}/pause", status=200)


def test_a_deletion_withdraws_what_is_unsent_and_keeps_the_history(stack: Stack, journal: Journal) -> None:
    made = stack.create(journal.url("/deleted"), rrule="FREQ=SECONDLY")
    stack.finished(made)
    stack_answer = _delete(stack, made)
    assert stack_answer == {"message": "Schedule and associated events deleted."}
    # What is in flight then ends as ever.
    wait_until(lambda: stack.events(made, "pending") == [], "nothing to be pending")
    assert {event["state"] for event in stack.events(made)} == {"completed"}
    assert {event["state"] for event in stack.events(made, include="cancelled")} == {"completed", "cancelled"}


def _delete(stack: Stack, schedule_id: str) -> dict[str, Any]:
    answer = requests.delete(f"{stack.url}/api/schedules/{schedule_id}", timeout=20)
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/",
        "http://2130706433:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://localhost:{port}/",
    ],
)
def test_an_address_that_callbacks_may_not_reach_is_refused_in_the_history(
    strict: Stack, journal: Journal, url: str
) -> None:
    port = journal.url("/").split(":")[2].split("/")[0]
    (event,) = strict.finished(strict.create(url.format(port=port), rrule=ONCE, max_retries=0))
    assert (event["state"], event["attempt"]) == ("error", 1)
    assert "the receiver has a private address" in event["attempts"][0]["error"]
    assert not any(word in str(event) for word in ("127.0.0.1", "::1", "169.254", "loopback", "link-local"))
    assert journal.connections == 0


@pytest.fixture(scope="module")
def strict(make_stack: Any) -> Stack:
    """No network is allowed to the worker; the API lets everything pass, as names would."""
    ready: Stack = make_stack(CALLBACK_ALLOWED_NETWORKS="")
    ready.api(CALLBACK_ALLOWED_NETWORKS="0.0.0.0/0,::/0")
    ready.beat()
    ready.worker()
    return ready
