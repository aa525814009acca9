"""From a rule to a callback and its history, through every real process."""

import resource
import time
from collections.abc import Callable
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


def gaps(event: dict[str, Any]) -> list[float]:
    """Seconds from the start of each attempt to that of the next: a receiver that stands still would note the
    first one late."""
    starts = [instant(attempt["started_at"]) for attempt in event["attempts"]]
    return [later - earlier for earlier, later in pairwise(starts)]


def test_a_single_instant_fires_at_its_time(stack: Stack, journal: Journal) -> None:
    made = stack.create(journal.url("/once"), delay_seconds=3, method="POST", body="hello")
    (event,) = stack.finished(made)
    (call,) = journal.calls["/once"]
    assert call.at >= instant(event["run_time"])
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
    first, second = gaps(event)
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
    (event,) = stack.finished(stack.create(url, rrule=ONCE))
    (gap,) = gaps(event)
    assert gap >= 3


def test_a_receiver_that_never_answers_costs_its_timeout_and_delays_nobody(
    stack: Stack, journal: Journal
) -> None:
    url = journal.script("/hangs", hangs)
    made = stack.create_many(10, url, rrule=ONCE, timeout_seconds=300, max_retries=0)
    impatient = stack.create(url, rrule=ONCE, timeout_seconds=2, max_retries=0)
    wait_until(lambda: len({call.key for call in journal.calls["/hangs"]}) == 11, "all of them to hang")
    quick = stack.create_many(10, journal.url("/quick"), rrule=ONCE)
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
    wait_until(lambda: any(each < resumed_at + 1.5 for each in due_since()), "the next call")
    assert min(due_since()) > asked_at - 0.5
    stack.post(f"/schedules/{made}/pause", status=200)


def test_a_deletion_withdraws_what_is_unsent_and_keeps_the_history(stack: Stack, journal: Journal) -> None:
    made = stack.create(journal.url("/deleted"), rrule="FREQ=SECONDLY")
    stack.finished(made)
    stack_answer = _delete(stack, made)
    assert stack_answer == {"message": "Schedule and associated events deleted."}
    # What is in flight then ends as ever.
    wait_until(lambda: stack.events(made, "pending") == [], "nothing to be pending")
    *others, first = stack.events(made)
    assert first["state"] == "completed"
    # One that was late is shown as withdrawn, and others that were are not.
    late = [event for event in others if event["state"] != "completed"]
    assert all(instant(event["run_time"]) <= instant(event["archived_at"]) for event in late)
    # The page has the newest, and where beats have made hundreds by then, none that was called.
    assert "cancelled" in {event["state"] for event in stack.events(made, include="cancelled")}


def _delete(stack: Stack, schedule_id: str) -> dict[str, Any]:
    answer = requests.delete(f"{stack.url}/api/schedules/{schedule_id}")
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize(
    "url",
    ["http://169.254.169.254/", "http://2852039166/", "http://[::ffff:169.254.169.254]/", "http://[::1]/"],
)
def test_an_address_that_callbacks_may_not_reach_is_refused_in_the_history(trusting: Stack, url: str) -> None:
    (event,) = trusting.finished(trusting.create(url, rrule=ONCE, max_retries=0))
    assert (event["state"], event["attempt"]) == ("error", 1)
    assert "the receiver has a private address" in event["attempts"][0]["error"]
    assert not any(word in str(event) for word in ("::1", "169.254", "loopback", "link-local"))


@pytest.fixture(scope="module")
def trusting(stack: Stack) -> Stack:
    """With another API, which lets every address pass, as APIs do with names; the worker does not."""
    stack.api(CALLBACK_ALLOWED_NETWORKS="0.0.0.0/0,::/0")
    return stack


def test_a_worker_may_have_as_many_connections_as_the_hard_limit_of_files_allows(
    make_stack: Callable[..., Stack],
) -> None:
    stack = make_stack()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1_024, hard - 1), hard))
    try:
        worker = stack.worker()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert resource.prlimit(worker.pid, resource.RLIMIT_NOFILE) == (hard, hard)
