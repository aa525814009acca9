"""What the end of an attempt means for its event: its next state, its time, and its line in the history."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.actions.kind import Outcome, Verdict
from scheduler_app.domain.cause import failing_key
from scheduler_app.domain.lateness import Lateness
from scheduler_app.domain.message import Message
from scheduler_app.domain.notification import Notifying
from scheduler_app.domain.retry import RetryPolicy
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.states import State
from scheduler_app.worker.attempt import (
    COMPLETED,
    Attempt,
    owed_by,
    postponed_for_another,
    set_aside_record,
)
from scheduler_app.worker.lease import Lease
from tests.builders import event, message, schedule

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
#: Delays between 5 and 10, 10 and 20, 20 and 40 seconds.
POLICY = RetryPolicy(max_retries=2, backoff_seconds=10.0, backoff_max_seconds=1_000.0)


def attempt(made: Schedule | None = None, **changes: Any) -> Attempt:
    made = replace(schedule(NOON), retry=POLICY) if made is None else made
    return Attempt(event(NOON, **changes), made, "token", "w1")


def verdict(outcome: Outcome = Outcome.SUCCESS, **fields: Any) -> Verdict:
    return Verdict("e", outcome, 200, None, "well", 1500.7504)._replace(**fields)


FAILED = verdict(Outcome.RETRY, status_code=503, reason="status 503")


def test_a_success_completes_the_event_and_its_history_tells_of_the_attempt() -> None:
    tried = attempt(attempt=2, attempts_before=1)
    record = tried.record(verdict(output="printed"), NOON + 2 * SECOND, "origin")
    assert (record.state, record.due_at, record.message) == (State.COMPLETED, None, COMPLETED)
    assert (record.event_id, record.token, record.origin) == (tried.event.id, "token", "origin")
    assert record.ended_at == NOON + timedelta(seconds=3.5)
    assert record.attempt == {
        "number": 3,
        "started_at": NOON + 2 * SECOND,
        "duration_ms": 1500.75,
        "lag_ms": 2000.0,
        "status_code": 200,
        "error": None,
        "snippet": "well",
        "worker": "w1",
        "output": "printed",
    }
    assert (record.event, record.owed) == (tried.event, None)
    assert record.attempts_allowed == 1 + 1 + POLICY.max_retries
    assert "output" not in tried.record(verdict(), NOON, "origin").attempt


def test_a_lag_counts_from_when_the_event_was_due_and_not_from_what_postponed_it() -> None:
    assert attempt().lag(NOON + 3 * SECOND) == 3.0
    assert attempt(due_at=NOON + SECOND, postponed_from=NOON).lag(NOON + 3 * SECOND) == 3.0


@pytest.mark.parametrize(("number", "least", "most"), [(0, 5, 10), (1, 10, 20)])
def test_a_failure_is_tried_again_after_a_delay_that_grows(number: int, least: int, most: int) -> None:
    record = attempt(attempt=number).record(FAILED._replace(duration_ms=1000.0), NOON, "origin")
    assert record.state is State.RETRYING
    assert record.due_at is not None
    assert NOON + (1 + least) * SECOND <= record.due_at <= NOON + (1 + most) * SECOND
    assert record.due_at.microsecond % 1000 == 0
    assert record.message.startswith(
        f"Attempt {number + 1} failed: status 503; the next follows at 2026-03-02T"
    )


def test_a_receiver_that_asks_for_more_time_gets_it() -> None:
    asks = FAILED._replace(retry_after=600.0, duration_ms=0.0)
    assert attempt().record(asks, NOON, "origin").due_at == NOON + 600 * SECOND


def test_the_last_attempt_ends_in_error_and_a_redrive_has_all_of_them_again() -> None:
    record = attempt(attempt=2).record(FAILED, NOON, "origin")
    assert (record.state, record.due_at) == (State.ERROR, None)
    assert record.message == "Attempt 3 failed, and it was the last one: status 503"
    redriven = attempt(attempt=2, attempts_before=2)
    again = redriven.record(FAILED._replace(duration_ms=0.0), NOON, "origin")
    assert again.state is State.RETRYING
    assert again.due_at is not None
    assert again.due_at <= NOON + 10 * SECOND, "the delays begin anew"
    assert attempt(attempt=4, attempts_before=2).record(FAILED, NOON, "origin").state is State.ERROR


def test_a_permanent_failure_is_not_tried_again() -> None:
    record = attempt().record(verdict(Outcome.PERMANENT, reason="status 410"), NOON, "origin")
    assert (record.state, record.due_at) == (State.ERROR, None)
    assert record.message == "Attempt 1 failed for good: status 410"


def test_a_retry_that_would_come_too_late_expires_the_event() -> None:
    impatient = replace(schedule(NOON), retry=POLICY, lateness=Lateness(expire_after_seconds=5.0))
    record = attempt(impatient).record(FAILED, NOON, "origin")
    assert (record.state, record.due_at) == (State.EXPIRED, None)
    assert record.message.startswith("Expired: attempt 1 failed: status 503; the next would start at")


def awaited(**fields: Any) -> Schedule:
    return replace(
        schedule(NOON), retry=POLICY, completion="callback", completion_timeout_seconds=90.0, **fields
    )


def test_an_attempt_whose_receiver_works_on_runs_until_it_says_how_that_went() -> None:
    record = attempt(awaited()).record(verdict(status_code=202, duration_ms=1000.0), NOON, "origin")
    assert (record.state, record.due_at) == (State.RUNNING, NOON + 91 * SECOND)
    assert record.message == (
        "Accepted with status 202: it runs until its receiver says how it went,"
        " until 2026-03-02T12:01:31Z at the latest"
    )
    without = attempt(awaited()).record(verdict(status_code=None, duration_ms=0.0), NOON, "origin")
    assert without.message.startswith("Accepted: it runs until")
    assert attempt(awaited()).record(FAILED, NOON, "origin").state is State.RETRYING
    assert attempt(awaited()).completion_seconds == 90.0
    assert attempt().completion_seconds is None
    made = message(NOON)
    assert isinstance(made.message, Message)
    assert Attempt(made, made.message, "token", "w1").completion_seconds is None


@pytest.mark.parametrize(("own", "of_event", "hops"), [(0, 0, 0), (2, 1, 2), (1, 2, 2)])
def test_who_wants_to_hear_of_its_end_is_owed_a_notification(own: int, of_event: int, hops: int) -> None:
    told = replace(schedule(NOON), retry=POLICY, on_success="good", on_failure="bad", hops=own)
    tried = attempt(told, hops=of_event)
    done = tried.record(verdict(), NOON, "origin").owed
    failed = tried.record(verdict(Outcome.PERMANENT), NOON, "origin")
    assert done is not None
    assert failed.owed is not None
    assert (done.when, done.destination, done.hops) == (Notifying.ON_SUCCESS, "good", hops)
    assert (failed.owed.when, failed.owed.destination) == (Notifying.ON_FAILURE, "bad")
    assert failed.owed.since == failed.ended_at
    assert tried.record(FAILED, NOON, "origin").owed is None
    only = replace(told, on_success=None)
    assert owed_by(only, tried.event, State.COMPLETED, NOON) is None
    assert owed_by(only, tried.event, State.ERROR, NOON) is not None
    assert owed_by(replace(told, on_failure=None), tried.event, State.COMPLETED, NOON) is not None


def test_only_failures_of_a_schedule_that_pauses_by_them_may_pause_it() -> None:
    assert not attempt().record(verdict(), NOON, "origin").pauses_on_failure
    pausing = replace(schedule(NOON), retry=POLICY, pause_after_failures=3)
    assert attempt(pausing).record(verdict(), NOON, "origin").pauses_on_failure
    made = message(NOON)
    assert isinstance(made.message, Message)
    assert not Attempt(made, made.message, "t", "w").record(verdict(), NOON, "origin").pauses_on_failure


def test_the_end_of_an_attempt_is_awaited_where_other_runs_are_judged_by_it() -> None:
    assert not attempt().is_awaited
    assert attempt(replace(schedule(NOON), run_overlap="queue")).is_awaited
    assert attempt(replace(schedule(NOON), run_overlap="skip")).is_awaited
    made = message(NOON)
    assert isinstance(made.message, Message)
    assert not Attempt(made, made.message, "t", "w").is_awaited


def test_an_event_that_cannot_be_attempted_ends_in_error_with_the_reason() -> None:
    told = replace(schedule(NOON), on_failure="bad")
    due = event(NOON, attempt=1, origin="origin")
    record = set_aside_record(due, "token", "w1", "a defect", NOON + SECOND, told)
    assert (record.state, record.due_at, record.ended_at) == (State.ERROR, None, NOON + SECOND)
    assert (record.event_id, record.token, record.event, record.origin) == (due.id, "token", due, "origin")
    assert record.message == "Set aside: a defect"
    assert record.attempt == {"number": 2, "started_at": NOON + SECOND, "error": "a defect", "worker": "w1"}
    assert record.owed is not None
    assert record.owed.destination == "bad"
    assert set_aside_record(due, "token", "w1", "a defect", NOON).owed is None


@pytest.mark.parametrize(
    ("waited", "longest"), [(0, 2), (8, 2), (40, 10), (239, 59.75), (240, 60), (10_000, 60)]
)
def test_what_waits_for_another_comes_again_within_a_part_of_the_time_that_it_has_waited(
    waited: float, longest: float
) -> None:
    """Many that wait at once come again at times of their own, from two seconds to the longest one."""
    lease = Lease("token", [], asked_at=0, timeout_seconds=10)
    now = NOON + waited * SECOND
    seconds = []
    for number in range(300):
        made = event(NOON, f"s{number}")
        asked = postponed_for_another(made, lease, "of the test", now).postponement
        assert asked.postponed_from == NOON
        seconds.append((asked.due_at - now).total_seconds())
    assert min(seconds) == pytest.approx(2, abs=0.01 + (longest - 2) / 50)
    assert max(seconds) == pytest.approx(longest, abs=0.01 + (longest - 2) / 50)


def test_what_was_put_off_before_has_waited_since_it_was_due_at_first() -> None:
    lease = Lease("token", [], asked_at=0, timeout_seconds=10)
    made = event(NOON + 100 * SECOND, "s1", postponed_from=NOON)
    asked = postponed_for_another(made, lease, "of the test", NOON + 400 * SECOND).postponement
    first = postponed_for_another(event(NOON, "s1")._replace(id=made.id), lease, "", NOON + 400 * SECOND)
    assert asked.due_at == first.postponement.due_at
    assert asked.postponed_from == NOON


def test_an_attempt_may_be_late_after_the_instant_until_which_it_was_judged() -> None:
    judged = replace(attempt(), judged_again_at=NOON)
    assert not judged.may_be_late(NOON)
    assert judged.may_be_late(NOON + SECOND)
    assert not attempt().may_be_late(NOON + SECOND)


def test_a_failure_tells_its_cause_and_every_end_the_tags_of_its_schedule() -> None:
    tagged = attempt(replace(schedule(NOON), retry=POLICY, tags=("billing",)))
    done = tagged.record(verdict(), NOON, "origin")
    assert (done.cause, done.tags) == (None, ("billing",))
    failed = tagged.record(FAILED, NOON, "origin")
    assert (failed.cause, failed.tags) == (
        failing_key(tagged.event.id, "origin", 503, "status 503"),
        ("billing",),
    )
    for error, reason, said in ((None, "refused", "refused"), ("timed out", "no answer", "timed out")):
        silent = verdict(Outcome.RETRY, status_code=None, error=error, reason=reason)
        assert tagged.record(silent, NOON, "origin").cause == failing_key(
            tagged.event.id, "origin", None, said
        )
    aside = set_aside_record(tagged.event, "token", "w1", "a defect", NOON)
    assert aside.cause == failing_key(tagged.event.id, tagged.event.origin, None, "a defect")
