"""When a receiver may say how its work went."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.event import (
    AwaitedEvent,
    CompletionReport,
    CompletionToken,
    is_known_token,
    new_completion_token,
    token_digest,
    why_report_is_too_late,
)
from scheduler_app.domain.schedule import next_look
from scheduler_app.domain.states import State

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
FAILED, TIMED_OUT, COMPLETED = (
    CompletionReport("failed", 1, NOW),
    CompletionReport("timed_out", 1, NOW),
    CompletionReport("completed", 1, NOW),
)


def awaited(state: State, told: CompletionReport | None) -> AwaitedEvent:
    return AwaitedEvent("e", "s", NOW, state, None, 1, 1, (), 60.0, None, False, told, "what happened")


@pytest.mark.parametrize(
    ("state", "told", "complete", "fail"),
    [
        (State.RUNNING, None, "taken", "taken"),
        (State.RUNNING, FAILED, "taken", "taken"),
        (State.RETRYING, None, "taken", "taken"),
        (State.READY_QUEUE, None, "taken", "taken"),
        (State.RETRYING, FAILED, "late", "again"),
        (State.WORKER_QUEUE, FAILED, "late", "again"),
        (State.RETRYING, TIMED_OUT, "late", "late"),
        (State.RETRYING, CompletionReport("failed", 0, NOW), "taken", "taken"),
        (State.COMPLETED, COMPLETED, "again", "late"),
        (State.ERROR, FAILED, "late", "again"),
        (State.ERROR, TIMED_OUT, "late", "late"),
        (State.ERROR, CompletionReport("failed", 0, NOW), "late", "late"),
        (State.CANCELLED, None, "late", "late"),
        (State.SKIPPED, None, "late", "late"),
    ],
)
def test_what_was_said_before_decides(
    state: State, told: CompletionReport | None, complete: str, fail: str
) -> None:
    words = {None: "taken", "": "again"}
    assert words.get(why_report_is_too_late(awaited(state, told), "completed"), "late") == complete
    assert words.get(why_report_is_too_late(awaited(state, told), "failed"), "late") == fail


def test_a_refusal_says_what_happened() -> None:
    assert (
        why_report_is_too_late(awaited(State.ERROR, None), "completed") == "the event is error: what happened"
    )


def test_a_token_is_long_and_shows_itself_in_no_log() -> None:
    token = new_completion_token()
    assert len(token) == 192 / 6  # each letter has six of its bits
    assert token not in repr(token)
    assert token not in f"{[token]!r}"
    assert f"{CompletionToken('x')}" == "x"


def test_any_of_the_tokens_is_known_and_no_other() -> None:
    digests = [token_digest("one"), token_digest("other")]
    assert is_known_token("one", digests)
    assert is_known_token("other", digests)
    assert not is_known_token("another", digests)
    assert not is_known_token("", ())


@pytest.mark.parametrize(
    ("waited", "place", "seconds"),
    [(0, 1, 10), (60, 1, 15), (3_600, 1, 60), (0, 5, 50), (3_600, 1_000, 600)],
)
def test_who_waits_longer_or_further_behind_looks_less_often(waited: int, place: int, seconds: int) -> None:
    assert next_look(timedelta(seconds=waited), place) == timedelta(seconds=seconds)
