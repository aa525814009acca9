"""Pauses that end by themselves, as beats end them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread

import pytest

from scheduler_app.domain.schedule import Pause, Schedule, ScheduleState
from scheduler_app.store import Store
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.usecases.duties.pauses import SCHEDULES_A_PAGE, Resumption
from tests.builders import schedule
from tests.processes import PATIENCE_SECONDS

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)

Paused = Callable[..., Schedule]


@pytest.fixture
def paused(store: Store, now: datetime) -> Paused:
    """Stores a schedule that was paused at `now`."""

    def made(until: datetime | None, schedule_id: str = "s1", **fields: object) -> Schedule:
        active = schedule(now - MINUTE, schedule_id, **fields)
        found = active.revise(now, state=ScheduleState.PAUSED, pause=Pause(note="moving", until=until))
        store.schedules.insert(found)
        return found

    return made


def stored(store: Store, schedule_id: str = "s1") -> Schedule:
    found = store.schedules.get(schedule_id)
    assert isinstance(found, Schedule)
    return found


def test_it_goes_on_at_its_end_with_the_occurrence_at_that_instant(
    store: Store, now: datetime, paused: Paused
) -> None:
    before = paused(now + MINUTE)
    resumption = Resumption(store)
    resumption.resume_page(now + 59 * SECOND)
    assert stored(store).state is ScheduleState.PAUSED
    resumption.resume_page(now + 61 * SECOND)
    after = stored(store)
    assert (after.state, after.pause, after.reason) == (ScheduleState.ACTIVE, None, None)
    assert (after.version, after.revision) == (before.version, before.revision + 1)
    events = Expansion(store, timeframe_seconds=60).expand_page(now + 61 * SECOND).events
    assert [each.run_time for each in events[:2]] == [now + 60 * SECOND, now + 61 * SECOND]


def test_beats_that_were_away_make_up_for_what_follows_the_pause_and_for_nothing_in_it(
    store: Store, now: datetime, paused: Paused
) -> None:
    paused(now + MINUTE, rrule="DTSTART:20260301T000000Z\nRRULE:FREQ=MINUTELY")
    late = now + 10 * MINUTE
    Resumption(store).resume_page(late)
    events = Expansion(store, timeframe_seconds=60).expand_page(late).events
    assert [each.run_time for each in events] == [now + n * MINUTE for n in range(1, 11)]


def test_a_pause_without_an_end_and_one_that_was_resumed_stay_as_they_are(
    store: Store, now: datetime, paused: Paused
) -> None:
    lasting, over = paused(None, "lasting"), paused(now + SECOND, "over")
    resumed = replace(over, version=over.version + 1).revise(now, state=ScheduleState.ACTIVE)
    assert store.schedules.revise(resumed, version=over.version)
    assert not Resumption(store).resume_page(now + MINUTE)
    assert stored(store, "lasting") == lasting
    assert stored(store, "over").revision == resumed.revision


def test_an_instant_that_passed_during_the_pause_is_not_made_up_for(
    store: Store, now: datetime, paused: Paused
) -> None:
    paused(now + MINUTE, run_at=datetime(2026, 3, 2, 12, 0, 30, tzinfo=UTC))
    Resumption(store).resume_page(now + MINUTE)
    assert stored(store).state is ScheduleState.FINISHED


def test_many_beats_end_many_pauses_once_each(store: Store, now: datetime, paused: Paused) -> None:
    count = SCHEDULES_A_PAGE + 50
    made = paused(now + SECOND, "each-0")
    store.schedules.insert_many([replace(made, id=f"each-{n}") for n in range(1, count)])
    barrier = Barrier(3)

    def beat() -> None:
        barrier.wait(PATIENCE_SECONDS)
        while Resumption(store).resume_page(now + MINUTE):
            continue

    beats = [Thread(target=beat) for _ in range(3)]
    for each in beats:
        each.start()
    for each in beats:
        each.join()
    rows = list(store.mongo.collection("schedules").find({}, {"state": 1, "revision": 1}))
    assert [(row["state"], row["revision"]) for row in rows] == [("active", made.revision + 1)] * count


def test_one_that_cannot_be_read_or_evaluated_holds_up_no_other(
    store: Store, now: datetime, paused: Paused
) -> None:
    for schedule_id in ("bent", "ruleless", "sound"):
        paused(now + SECOND, schedule_id)
    schedules = store.mongo.collection("schedules")
    schedules.update_one({"_id": "bent"}, {"$set": {"pause.note": 5}})
    schedules.update_one({"_id": "ruleless"}, {"$set": {"pinned": "no rule"}})
    assert not Resumption(store).resume_page(now + MINUTE)
    assert stored(store, "sound").state is ScheduleState.ACTIVE
    bent = store.schedules.get("bent")
    assert isinstance(bent, CorruptSchedule)
    assert "pause.note" in bent.reason
    for schedule_id in ("bent", "ruleless"):
        row = schedules.find_one({"_id": schedule_id})
        assert row is not None
        assert row["state"] == "error"
