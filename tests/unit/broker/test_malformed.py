"""What is counted and logged of a message that is dropped."""

from datetime import timedelta

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from scheduler_app.broker import malformed
from scheduler_app.broker.malformed import (
    HEAD_LENGTH,
    LINES_A_MINUTE,
    MAX_IDS,
    Malformed,
    check_deliver,
    check_eta,
    note_dropped,
)
from scheduler_app.clock import clock
from scheduler_app.config import VISIBILITY_TIMEOUT_SECONDS


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(malformed, "_lines", malformed._Lines())


def counted(reason: str) -> float:
    return REGISTRY.get_sample_value("scheduler_messages_dropped_total", {"reason": reason}) or 0.0


def test_a_flood_is_counted_whole_and_logged_in_part() -> None:
    before = counted("not_json")
    with capture_logs() as lines:
        for _ in range(1_000):
            note_dropped(Malformed("not_json", "it is not JSON"), b"x")
        note_dropped(Malformed("envelope", "it is no map"), b"y")
    assert counted("not_json") == before + 1_000
    assert [line["reason"] for line in lines] == ["not_json"] * LINES_A_MINUTE + ["envelope"]


@pytest.mark.parametrize(
    "head", [b"\x1b[31m\n" + b"A" * 10**6, "\u202e\n" + "A" * 10**6, {"a": "\n" * 10**5}]
)
def test_what_is_shown_of_it_is_short_and_cannot_drive_a_terminal(head: object) -> None:
    with capture_logs() as lines:
        note_dropped(Malformed("not_json", "it is not JSON"), head)
    (shown,) = [line["head"] for line in lines]
    assert len(shown) <= HEAD_LENGTH
    assert shown.isascii()
    assert shown.isprintable()


@pytest.mark.parametrize(
    ("seconds", "fits"), [(-3600, True), (60, True), (VISIBILITY_TIMEOUT_SECONDS, False)]
)
def test_an_eta_that_the_visibility_timeout_would_overtake_is_refused(seconds: float, fits: bool) -> None:
    # What is too far ahead by a minute is so, however long it takes until it is judged.
    eta = (clock.now() + timedelta(seconds=seconds + 60)).isoformat()
    if fits:
        check_eta(eta)
    else:
        with pytest.raises(Malformed):
            check_eta(eta)


def test_a_batch_of_the_most_ids_passes_and_one_more_does_not() -> None:
    check_deliver([], {"v": 1, "ids": ["x"] * MAX_IDS})
    with pytest.raises(Malformed):
        check_deliver([], {"v": 1, "ids": ["x"] * (MAX_IDS + 1)})
