"""Whether a broker that failed answers again: nobody waits for that."""

from collections.abc import Callable
from typing import cast

import pytest

from scheduler_app.broker import publisher
from scheduler_app.broker.publisher import PATIENCE_SECONDS, QueueProbe, RecoveryProbe


class Probe:
    """Counts the questions, which have the answer that a test gives."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer: int | Exception = TimeoutError()

    def ask(self) -> Callable[[float], int]:
        self.asked += 1

        def wait(seconds: float) -> int:
            assert seconds == 0.0
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

        return wait


def test_a_broker_that_failed_is_away_until_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(publisher, "monotonic", lambda: now)
    probe = Probe()
    recovery = RecoveryProbe(cast(QueueProbe, probe))
    assert not recovery.is_away()
    assert probe.asked == 0, "nothing has failed"
    recovery.failed()
    assert recovery.is_away()
    assert probe.asked == 1
    # It is asked once for as long as an answer may take, and then again.
    now += PATIENCE_SECONDS - 0.01
    assert recovery.is_away()
    assert probe.asked == 1
    now += 0.01
    assert recovery.is_away()
    assert probe.asked == 2
    probe.answer = OSError("it refuses")
    assert recovery.is_away()
    assert probe.asked == 2
    probe.answer = 5
    assert not recovery.is_away()
    assert not recovery.is_away()
    assert probe.asked == 2
    # A later failure is a new question.
    recovery.failed()
    assert recovery.is_away()
    assert probe.asked == 3
