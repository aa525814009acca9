"""Which claimed events are too late, where no store has to be asked."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pymongo.errors import AutoReconnect
from structlog.testing import capture_logs

from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.event import Event
from scheduler_app.domain.lateness import CatchUp
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.states import Kind
from scheduler_app.store import Store
from scheduler_app.worker.policies import LateEvents, judged_again_at
from tests.builders import event, schedule

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
NO_STORE = cast(Store, None)


def made(**fields: Any) -> Schedule:
    return schedule(NOON - timedelta(days=1), catch_up=CatchUp.NONE, late_after_seconds=60, **fields)


def expired(events: list[Event], asked: Schedule, now: datetime) -> list[str]:
    return list(LateEvents(NO_STORE).expired([(each, asked) for each in events], now))


@pytest.mark.parametrize(("overlap", "late"), [("queue", False), ("allow", True), ("skip", True)])
def test_what_waited_in_turn_for_an_earlier_run_was_not_missed(overlap: str, *, late: bool) -> None:
    waited = event(NOON, postponed_from=NOON)
    asked, now = made(run_overlap=overlap), NOON + 90 * SECOND
    assert bool(expired([waited], asked, now)) is late
    assert (judged_again_at(waited, asked, NOON) is not None) is late
    assert expired([event(NOON)], asked, now) == [event(NOON).id]


def test_an_event_is_judged_again_when_it_may_be_late() -> None:
    assert judged_again_at(event(NOON), made(), NOON) == NOON + 60 * SECOND
    assert judged_again_at(event(NOON), schedule(NOON), NOON) is None
    assert expired([event(NOON)], made(), NOON + 60 * SECOND) == []
    assert expired([event(NOON)], made(), NOON + 61 * SECOND) == [event(NOON).id]


def test_what_was_jittered_is_late_since_its_jitter_was_over() -> None:
    asked = made(jitter_seconds=50)
    again = judged_again_at(event(NOON), asked, NOON)
    assert again is not None
    assert NOON + 60 * SECOND < again <= NOON + 110 * SECOND
    # By hand it has none.
    assert judged_again_at(event(NOON, kind=Kind.MANUAL), asked, NOON) is None


def test_an_event_that_cannot_be_judged_is_sent_and_the_others_are_judged() -> None:
    asked = made()
    broken = event(NOON - 5 * SECOND)._replace(due_since=cast(datetime, "soon"))
    late = event(NOON)
    assert expired([broken, late], asked, NOON + 90 * SECOND) == [late.id]


def test_where_the_store_does_not_answer_nothing_is_judged() -> None:
    def fails(*_: Any) -> None:
        raise AutoReconnect("of the test")

    asked = schedule(NOON, catch_up=CatchUp.LATEST, late_after_seconds=60).revise(NOON)
    store = cast(Store, SimpleNamespace(expirations=SimpleNamespace(newest_due=fails)))
    with pytest.raises(AutoReconnect):
        LateEvents(store).expired([(event(NOON), asked)], NOON + 90 * SECOND)


def test_an_event_whose_rule_cannot_be_asked_for_the_next_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Schedule) -> None:
        raise InvalidRecurrence("rrule", "of the test")

    asked = schedule(NOON - timedelta(days=1), catch_up=CatchUp.LATEST, late_after_seconds=60)
    late = event(NOON)
    assert expired([late], asked, NOON + 90 * SECOND) == [late.id]
    monkeypatch.setattr(Schedule, "recurrence", fails)
    with capture_logs() as lines:
        assert expired([late], asked, NOON + 90 * SECOND) == []
    assert lines == [], "a rule of which no later instant is known is no defect of ours"
