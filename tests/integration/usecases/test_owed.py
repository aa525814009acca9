"""What an edit leaves to beats: the cut is written at once, what is owed up to it page by page."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.actions.http import new_secret
from scheduler_app.domain.errors import Conflict
from scheduler_app.domain.event import from_id
from scheduler_app.domain.lateness import CatchUp
from scheduler_app.domain.schedule import MAX_OWED, OwedRange, Schedule, ScheduleState
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.usecases.deeds.schedules import ScheduleService
from scheduler_app.usecases.duties.expansion import OCCURRENCES_AN_EDIT, Expansion
from scheduler_app.usecases.duties.owed_expansion import OWING_SCHEDULES_A_PAGE, OwedExpansion
from tests.builders import draft, schedule
from tests.processes import PATIENCE_SECONDS

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
#: The longest time without beats here; what is owed of it takes some pages.
AWAY = 2 * HOUR


@pytest.fixture
def expansion(store: Store) -> Expansion:
    return Expansion(store, timeframe_seconds=60)


@pytest.fixture
def manager(store: Store, expansion: Expansion) -> ScheduleService:
    return ScheduleService(
        store=store,
        expand_until=lambda schedule, until: expansion.expand_up_to(schedule, until).left_to_beats,
        expand_and_dispatch=lambda schedules, now: None,
        dispatch=lambda events, now: None,
        check_action=lambda action: None,
        new_secret=new_secret,
    )


@pytest.fixture
def owed_expansion(store: Store) -> OwedExpansion:
    return OwedExpansion(store, occurrences_a_page=500)


def stored(store: Store, schedule_id: str = "s1") -> Schedule:
    found = store.schedules.get(schedule_id)
    assert isinstance(found, Schedule)
    return found


def run_times(store: Store, revision: int = 1, schedule_id: str = "s1") -> list[datetime]:
    """Of all that wait, in the order of time; an instant that was doubled stands there twice."""
    which = {"schedule_id": schedule_id, "revision": revision, "state": State.READY_QUEUE}
    return sorted(row["run_time"] for row in store.mongo.collection("events").find(which, {"run_time": 1}))


def each_second(after: datetime, until: datetime) -> list[datetime]:
    return [after + (1 + i) * SECOND for i in range(int((until - after).total_seconds()))]


def make_up(owed_expansion: OwedExpansion, now: datetime) -> int:
    """Beats' turns until nothing is left; returns how many."""
    turns = 1
    while owed_expansion.expand_page(now):
        turns += 1
    return turns


def document(store: Store, schedule_id: str = "s1") -> dict[str, Any]:
    found = store.mongo.collection("schedules").find_one({"_id": schedule_id})
    assert found is not None
    return found


def test_a_pause_after_an_outage_writes_the_cut_and_beats_make_up_exactly_what_is_owed(
    store: Store, manager: ScheduleService, owed_expansion: OwedExpansion, now: datetime
) -> None:
    store.schedules.insert(schedule(now))
    cut = now + AWAY
    assert manager.pause("s1", cut).state is ScheduleState.PAUSED
    assert run_times(store) == []
    assert stored(store).state is ScheduleState.PAUSED
    turns = make_up(owed_expansion, cut)
    assert run_times(store) == each_second(now, cut)
    assert turns > AWAY / SECOND / 500, "in pages"
    left = document(store)
    assert not {"owed", "owed_owner", "owed_lease_until"} & left.keys()
    assert stored(store).state is ScheduleState.PAUSED


@pytest.mark.parametrize(
    ("owed", "made_at_once"), [(OCCURRENCES_AN_EDIT, True), (OCCURRENCES_AN_EDIT + 1, False)]
)
def test_what_is_little_is_made_by_the_edit_itself(
    store: Store, manager: ScheduleService, now: datetime, owed: int, made_at_once: bool
) -> None:
    store.schedules.insert(schedule(now))
    manager.pause("s1", now + owed * SECOND)
    assert len(run_times(store)) == (owed if made_at_once else 0)
    assert bool(stored(store).owed) is not made_at_once


def test_a_page_is_shared_by_the_schedules_that_it_is_made_for(
    store: Store, manager: ScheduleService, now: datetime
) -> None:
    owed_expansion = OwedExpansion(store, occurrences_a_page=500)
    assert not owed_expansion.expand_page(now)
    cut = now + AWAY
    for names, each in ((("s1",), 500), (("s2", "s3"), 250)):
        for name in names:
            store.schedules.insert(schedule(now, name))
            manager.pause(name, cut)
        assert owed_expansion.expand_page(cut)
        assert [len(run_times(store, schedule_id=name)) for name in names] == [each] * len(names)
        store.mongo.collection("schedules").delete_many({})


def test_the_last_occurrence_before_a_cut_has_a_page_of_its_own(
    store: Store, manager: ScheduleService, owed_expansion: OwedExpansion, now: datetime
) -> None:
    store.schedules.insert(schedule(now, queue="eu"))
    cut = now + 501 * SECOND
    manager.pause("s1", cut)
    owed_expansion.expand_page(cut)
    (left,) = stored(store).owed
    assert left.next_run_at == cut
    make_up(owed_expansion, cut)
    assert run_times(store) == each_second(now, cut)
    assert store.mongo.collection("events").distinct("queue") == ["eu"], "they stay in its queue"


def test_the_new_revision_does_not_wait_for_what_the_old_one_owes(
    store: Store, manager: ScheduleService, expansion: Expansion, owed_expansion: OwedExpansion, now: datetime
) -> None:
    store.schedules.insert(schedule(now))
    cut = now + AWAY
    manager.edit("s1", draft(rrule="FREQ=SECONDLY;INTERVAL=10"), cut)
    token, claimed = store.owed.claim(["s1"], lease_seconds=600)
    assert len(claimed) == 1
    new = [event.run_time for event in expansion.expand_page(cut).events]
    assert len(new) == 6
    assert min(new) > cut
    oldest = claimed[0].range
    assert oldest is not None
    assert store.owed.advance("s1", token, oldest)
    make_up(owed_expansion, cut)
    assert run_times(store) == each_second(now, cut)
    assert run_times(store, revision=2) == new


def test_two_beats_at_once_double_nothing(store: Store, manager: ScheduleService, now: datetime) -> None:
    names = [f"s{number}" for number in range(2 * OWING_SCHEDULES_A_PAGE)]
    store.schedules.insert_many([schedule(now, name) for name in names])
    cut = now + 600 * SECOND
    for name in names:
        manager.pause(name, cut)
    together = threading.Barrier(2)

    def beat() -> None:
        mine = OwedExpansion(store, occurrences_a_page=500)
        together.wait(PATIENCE_SECONDS)
        make_up(mine, cut)

    with ThreadPoolExecutor(2) as beats:
        for turn in [beats.submit(beat) for _ in range(2)]:
            turn.result()
    make_up(OwedExpansion(store), cut)  # a beat goes when the other holds the rest
    for name in names:
        assert run_times(store, schedule_id=name) == each_second(now, cut)


def test_a_beat_that_died_between_events_and_cursor_is_followed_by_another(
    store: Store, manager: ScheduleService, owed_expansion: OwedExpansion, now: datetime
) -> None:
    store.schedules.insert(schedule(now))
    cut = now + 1_000 * SECOND
    manager.pause("s1", cut)
    store.owed.claim(["s1"], lease_seconds=-1)
    first = [from_id(f"s1-1-{now + (1 + i) * SECOND:%Y%m%dT%H%M%SZ}") for i in range(300)]
    store.events.insert([each for each in first if each], cut, "before the crash")
    assert len(run_times(store)) == 300
    make_up(owed_expansion, cut)
    assert run_times(store) == each_second(now, cut)


def test_a_beat_whose_claim_ran_out_does_not_set_back_the_one_that_followed(
    store: Store, manager: ScheduleService, owed_expansion: OwedExpansion, now: datetime
) -> None:
    store.schedules.insert(schedule(now))
    manager.pause("s1", now + AWAY)
    token, (slow,) = store.owed.claim(["s1"], lease_seconds=-1)
    owed_expansion.expand_page(now + AWAY)
    (moved,) = stored(store).owed
    assert not store.owed.advance("s1", token, slow.range)
    assert stored(store).owed == (moved,)


def test_edits_one_after_the_other_leave_each_its_own_stretch(
    store: Store, manager: ScheduleService, owed_expansion: OwedExpansion, now: datetime
) -> None:
    store.schedules.insert(schedule(now))
    first, second = now + HOUR, now + 2 * HOUR
    manager.edit("s1", draft(rrule="FREQ=SECONDLY;INTERVAL=2"), first)
    owed_expansion.expand_page(first)  # a beat is in the middle of it
    # Nothing of the second revision has been expanded when the third comes.
    manager.edit("s1", draft(rrule="FREQ=SECONDLY;INTERVAL=3"), second)
    assert [owed.revision for owed in stored(store).owed] == [1, 2]
    manager.pause("s1", second + 300 * SECOND)
    make_up(owed_expansion, second)
    assert run_times(store, 1) == each_second(now, first)
    assert run_times(store, 2) == stored_rule(now, first, second, step=2)
    assert run_times(store, 3) == stored_rule(now, second, second + 300 * SECOND, step=3)


def stored_rule(now: datetime, after: datetime, until: datetime, *, step: int) -> list[datetime]:
    """A rule without DTSTART counts from the second after it was given."""
    return [moment for i, moment in enumerate(each_second(after, until)) if i % step == 0]


def test_an_edit_that_would_leave_too_much_is_refused_until_beats_have_made_up_some(
    store: Store, manager: ScheduleService, owed_expansion: OwedExpansion, now: datetime
) -> None:
    store.schedules.insert(schedule(now))
    gap = (OCCURRENCES_AN_EDIT + 1) * SECOND
    cut = now
    for step in range(MAX_OWED):
        cut += 3 * gap
        manager.edit("s1", draft(rrule=f"FREQ=SECONDLY;INTERVAL={2 - step % 2}"), cut)
    assert len(stored(store).owed) == MAX_OWED
    with pytest.raises(Conflict, match="try again in some seconds"):
        manager.pause("s1", cut + 3 * gap)
    assert stored(store).state is ScheduleState.ACTIVE
    while len(stored(store).owed) == MAX_OWED:
        assert owed_expansion.expand_page(cut)
    assert manager.pause("s1", cut + 3 * gap).state is ScheduleState.PAUSED


def test_a_deletion_drops_what_is_owed_also_under_a_beat_that_is_at_it(
    store: Store,
    manager: ScheduleService,
    owed_expansion: OwedExpansion,
    now: datetime,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store.schedules.insert(schedule(now))
    cut = now + AWAY
    manager.pause("s1", cut)
    claim = store.owed.claim

    def deleted_after_the_claim(*args: Any, **kwargs: Any) -> Any:
        won = claim(*args, **kwargs)
        manager.delete("s1", cut)
        return won

    monkeypatch.setattr(store.owed, "claim", deleted_after_the_claim)
    owed_expansion.expand_page(cut)
    assert run_times(store) == []
    assert "owed" not in document(store)
    assert store.owed.waiting(limit=10) == []


def test_a_rule_with_a_count_is_counted_on_from_page_to_page(
    store: Store, manager: ScheduleService, owed_expansion: OwedExpansion, now: datetime
) -> None:
    rule = f"DTSTART:{now:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=MINUTELY;BYSECOND=5,25,50;COUNT=900"
    made = schedule(now, rrule=rule)
    store.schedules.insert(made)
    manager.edit("s1", draft(run_at=now + 48 * HOUR), now + 24 * HOUR)
    owed_expansion.expand_page(now + 24 * HOUR)
    (left,) = stored(store).owed
    assert left.checkpoint == made.recurrence().checkpoint(run_times(store)[-1])
    make_up(owed_expansion, now + 24 * HOUR)
    assert run_times(store) == made.recurrence().between(now, now + 24 * HOUR)
    assert len(run_times(store)) == 900


def test_after_a_missed_stretch_a_rule_is_counted_on_from_its_end(store: Store, now: datetime) -> None:
    rule = f"DTSTART:{now:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=MINUTELY;BYSECOND=5,25,50;COUNT=900"
    policy: dict[str, Any] = {"catch_up": CatchUp.NONE, "late_after_seconds": 60}
    edited, waiting = (schedule(now, name, rrule=rule, **policy) for name in ("edited", "waiting"))
    store.schedules.insert_many([edited, waiting])
    owed = OwedRange(1, edited.trigger, now, now + 4 * HOUR)
    paused = edited.revise(now + 4 * HOUR, state=ScheduleState.PAUSED)
    assert store.schedules.revise(paused, version=1, owed=owed)
    back = now + 2 * HOUR
    OwedExpansion(store).expand_page(back)
    Expansion(store, timeframe_seconds=60).expand_page(back)
    (left,) = stored(store, "edited").owed
    recurrence = waiting.recurrence()
    for one in (left, stored(store, "waiting")):
        assert one.next_run_at is not None
        assert back - 2 * MINUTE < one.next_run_at < back + 2 * MINUTE
        passed = [each for each in recurrence.between(now, now + 4 * HOUR) if each < one.next_run_at]
        assert one.checkpoint == recurrence.checkpoint(passed[-1])


def test_a_schedule_that_the_edit_finishes_still_sends_what_it_owed(
    store: Store, manager: ScheduleService, owed_expansion: OwedExpansion, now: datetime
) -> None:
    store.schedules.insert(schedule(now))
    cut = now + 1_000 * SECOND
    over = f"DTSTART:{now:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=SECONDLY;COUNT=10"
    assert manager.edit("s1", draft(rrule=over), cut).state is ScheduleState.FINISHED
    make_up(owed_expansion, cut)
    assert run_times(store) == each_second(now, cut)


@pytest.mark.parametrize(
    "bent", [{"owed.0.pinned": "NOT A RULE"}, {"owed.0.until": "noon"}, {"owed.0": 7}, {"owed": "much"}]
)
def test_a_range_that_no_longer_evaluates_is_dropped_with_its_reason_and_the_others_go_on(
    store: Store, manager: ScheduleService, owed_expansion: OwedExpansion, now: datetime, bent: dict[str, Any]
) -> None:
    cut = now + 1_000 * SECOND
    for name in ("bent", "s1"):
        store.schedules.insert(schedule(now, name))
        manager.pause(name, cut)
    store.mongo.collection("schedules").update_one({"_id": "bent"}, {"$set": bent})
    make_up(owed_expansion, cut)
    assert run_times(store) == each_second(now, cut)
    dropped = document(store, "bent")
    assert "owed" not in dropped
    assert dropped["reason"].startswith("Not made: occurrences")
    assert stored(store, "bent").state is ScheduleState.PAUSED


def test_an_edit_of_another_field_leaves_what_is_owed_alone(
    store: Store, manager: ScheduleService, owed_expansion: OwedExpansion, now: datetime
) -> None:
    store.schedules.insert(schedule(now))
    cut = now + 1_000 * SECOND
    manager.pause("s1", cut)
    manager.edit("s1", draft(rrule="FREQ=SECONDLY", name="renamed"), cut + SECOND)
    assert replace(stored(store).owed[0], checkpoint=None).until == cut
    make_up(owed_expansion, cut)
    assert run_times(store) == each_second(now, cut)
