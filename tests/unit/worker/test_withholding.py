"""What keeps a claimed event from being sent, by what the worker knows and by when it has looked."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from scheduler_app.domain.blackout import Cover
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.kill_switch import KillSwitches, Scope, Target, held_line
from scheduler_app.domain.tenant import DeliverySlots
from scheduler_app.store import Store
from scheduler_app.store.events.outbox import HELD_FOR
from scheduler_app.worker import withholding
from scheduler_app.worker.attempt import Attempt, Job
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.withholding import BACK_TO_BEAT, STALE_SECONDS, Withholding
from tests.builders import event, schedule

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
EVERYTHING = Target(TENANT, Scope.ALL)


def job(**changes: Any) -> Job:
    due = event(NOON, **changes)
    lease = Lease("token", [due.id], asked_at=0, timeout_seconds=10)
    return Job(Attempt(due, schedule(NOON), "token", "w1"), lease, "origin")


def view(**known: Any) -> Any:
    usual = {"has_answer": True, "is_away": False, "is_old": False, "looked_at": 100.0}
    return SimpleNamespace(**usual | known)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Withholding:
    """It knows that nothing is stopped."""
    monkeypatch.setattr(withholding, "KillSwitchView", lambda _: view(known=KillSwitches()))
    blackouts = SimpleNamespace(all=(), covering=lambda *_: None)
    monkeypatch.setattr(withholding, "BlackoutView", lambda _: view(known=blackouts))
    return Withholding(cast(Store, None), lambda: None)


@pytest.mark.parametrize(
    ("changes", "seconds", "may"),
    [
        ({}, STALE_SECONDS - 0.25, True),
        ({}, STALE_SECONDS, False),
        ({"is_away": True}, STALE_SECONDS, True),
        ({"has_answer": False}, 0.0, False),
    ],
)
def test_an_attempt_starts_by_fresh_knowledge_alone(
    watch: Withholding, monkeypatch: pytest.MonkeyPatch, changes: Any, seconds: float, *, may: bool
) -> None:
    vars(watch.kill_switches).update(changes, looked_at=STALE_SECONDS)
    monkeypatch.setattr(withholding, "monotonic", lambda: STALE_SECONDS + seconds)
    assert watch.may_start() is may
    vars(watch.blackouts).update(has_answer=False)
    assert not watch.may_start()


@pytest.mark.parametrize(
    ("is_old", "has_answer", "looks"),
    [(True, True, True), (False, False, True), (True, False, True), (False, True, False)],
)
@pytest.mark.usefixtures("watch")
def test_while_there_are_events_kill_switches_are_looked_at_and_blackouts_when_they_are_old_or_unknown(
    monkeypatch: pytest.MonkeyPatch, *, is_old: bool, has_answer: bool, looks: bool
) -> None:
    looked: list[str] = []
    watch = Withholding(cast(Store, None), lambda: looked.append("waits"))
    vars(watch.blackouts).update(is_old=is_old, has_answer=has_answer, look=lambda: looked.append("b"))
    vars(watch.kill_switches).update(look=lambda: looked.append("k"))
    ends = iter([False, True])
    monkeypatch.setattr(watch, "_ended", SimpleNamespace(wait=lambda _: next(ends)))
    watch.run()
    assert looked == (["waits", "b", "k"] if looks else ["waits", "k"]) * 2


def test_a_look_that_fails_is_told_of_and_made_again_until_the_end(
    watch: Withholding, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = list[int]()

    def look() -> None:
        looks.append(1)
        if len(looks) == 1:
            raise ValueError("a defect of ours")
        watch.stop()

    vars(watch.kill_switches).update(look=look)
    monkeypatch.setattr(withholding, "KILL_SWITCH_LOOK_SECONDS", 0.0)
    with capture_logs() as lines:
        watch.run()
    assert len(looks) == 2
    assert [line["event"] for line in lines] == ["withholding.failed"]


def test_an_attempt_of_a_tenant_with_slots_needs_one_and_a_suspect_none(watch: Withholding) -> None:
    assert watch.slots_of(job()) is None
    vars(watch.kill_switches).update(known=KillSwitches(delivery_slots={TENANT: 3}))
    assert watch.slots_of(job()) == DeliverySlots(TENANT, 3)
    assert watch.slots_of(job()._replace(has_slot=True)) is None
    assert watch.slots_of(job()._replace(isolated=True)) is None
    vars(watch.kill_switches).update(known=KillSwitches(delivery_slots={"another": 3}))
    assert watch.slots_of(job()) is None


@pytest.mark.parametrize("since", [None, NOON - 60 * SECOND])
def test_what_a_kill_switch_stops_is_held_since_it_was_due_at_first(
    watch: Withholding, since: datetime | None
) -> None:
    made = job(postponed_from=since)
    assert watch.withheld(made, NOON) is None
    vars(watch.kill_switches).update(known=KillSwitches(frozenset([EVERYTHING])))
    held = watch.withheld(made, NOON + SECOND)
    assert held is not None
    asked = held.postponement
    assert (asked.event_id, asked.token) == (made.attempt.event.id, "token")
    assert (asked.due_at, asked.postponed_from) == (NOON + SECOND + HELD_FOR, since or NOON)
    assert (asked.held, asked.message) == (EVERYTHING.key, held_line(EVERYTHING))
    assert held.lease is made.lease


def test_a_kill_switch_of_a_tag_stops_what_has_it_and_nothing_else(watch: Withholding) -> None:
    billing = Target(TENANT, Scope.TAG, "billing")
    vars(watch.kill_switches).update(known=KillSwitches(frozenset([billing])))
    made = job()
    assert watch.withheld(made, NOON) is None
    tagged = replace(made.attempt, deliverable=replace(schedule(NOON), tags=("billing",)))
    assert watch.withheld(made._replace(attempt=tagged), NOON) is not None


@pytest.mark.parametrize("since", [None, NOON - 60 * SECOND])
@pytest.mark.parametrize(
    ("skips_from", "lasts", "due"),
    [
        (None, 3600 * SECOND, 3600 * SECOND),
        (NOON, 3600 * SECOND, SECOND + BACK_TO_BEAT),
        (NOON, 2 * SECOND, 2 * SECOND),
    ],
)
def test_what_a_blackout_covers_comes_at_its_end_and_what_it_skips_comes_to_a_beat_soon(
    watch: Withholding,
    since: datetime | None,
    skips_from: datetime | None,
    lasts: timedelta,
    due: timedelta,
) -> None:
    cover = Cover(NOON + lasts, "night", NOON, skips_from)
    known = SimpleNamespace(all=("night",), covering=lambda *_: cover)
    vars(watch.blackouts).update(known=known)
    made = job(postponed_from=since)
    held = watch.withheld(made, NOON + SECOND)
    assert held is not None
    asked = held.postponement
    assert (asked.due_at, asked.postponed_from) == (NOON + due, since or NOON)
    assert (asked.message, asked.held, held.lease) == (cover.postponed_line, None, made.lease)
    known.covering = lambda *_: None
    assert watch.withheld(made, NOON) is None
