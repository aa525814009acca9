"""Which schedules a full page of expansion chooses, how far they are expanded, and when another page follows;
with small pages."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from pymongo.errors import AutoReconnect

from scheduler_app.domain.action import FRESH_FOR
from scheduler_app.domain.ids import whole_id
from scheduler_app.domain.lateness import CatchUp
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.tenant import Tenant
from scheduler_app.store import Store
from scheduler_app.usecases.duties import expansion as expanding
from scheduler_app.usecases.duties.expansion import (
    NEXT_NEEDED,
    OCCURRENCES_A_SCHEDULE,
    OWING_SHARE,
    WORTH_PARTS,
    ExpandResult,
    Expansion,
    deadline_after,
)
from tests.builders import event, schedule

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
#: How soon a schedule's next occurrence is for it to be expanded before others.
SOON = NEXT_NEEDED / 2
PAGE = 8


@pytest.fixture
def expansion(store: Store, monkeypatch: pytest.MonkeyPatch) -> Expansion:
    monkeypatch.setattr(expanding, "SCHEDULES_A_PAGE", PAGE)
    return Expansion(store, timeframe_seconds=600)


def plant(store: Store, now: datetime, first: dict[str, datetime], rule: str = "FREQ=HOURLY") -> None:
    """Schedules by their names, with their next occurrences."""
    for name, at in first.items():
        start = f"DTSTART:{at:%Y%m%dT%H%M%SZ}\nRRULE:{rule}"
        store.schedules.insert(schedule(min(at, now) - SECOND, name, rrule=start))


def many(count: int, at: datetime, prefix: str) -> dict[str, datetime]:
    return {f"{prefix}{number:02}": at + number * SECOND for number in range(count)}


def made(page: ExpandResult) -> set[str]:
    return {event.schedule_id for event in page.events}


def stored(store: Store, name: str) -> Schedule:
    found = store.schedules.get(name)
    assert isinstance(found, Schedule)
    return found


def test_what_is_due_within_moments_is_expanded_first_and_only_as_far_as_is_needed_next(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    plant(store, now, {"soon": now + SOON - SECOND}, "FREQ=SECONDLY;INTERVAL=10")
    plant(store, now, {"edge": now + SOON} | many(PAGE, now + SOON + SECOND, "later"))
    page = expansion.expand_page(now)
    times = [each.run_time for each in page.events]
    assert times == [now + second * SECOND for second in (29, 39, 49, 59)]
    assert (page.claimed, made(page), page.full) == (1, {"soon"}, True)


def test_where_nothing_is_due_within_moments_a_page_is_expanded_to_the_whole_timeframe(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    plant(store, now, {"edge": now + SOON}, "FREQ=SECONDLY;INTERVAL=60")
    plant(store, now, many(PAGE, now + SOON + SECOND, "later"))
    page = expansion.expand_page(now)
    assert (page.claimed, page.full) == (PAGE, True), "others wait beyond the page"
    assert Counter(each.schedule_id for each in page.events)["edge"] == 10
    assert expansion.expand_page(now).full is False


def test_what_is_overdue_has_its_share_of_a_page_beside_what_is_due_within_moments(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    plant(store, now, many(PAGE + 4, now - HOUR, "owing"))
    plant(store, now, {"first": now + 5 * SECOND} | many(PAGE + 2, now + 20 * SECOND, "near"))
    chosen = made(expansion.expand_page(now))
    share = PAGE // OWING_SHARE
    assert sorted(chosen) == sorted(
        ["first", *(f"near{n:02}" for n in range(PAGE - share - 1)), *(f"owing{n:02}" for n in range(share))]
    )


def test_what_is_overdue_has_what_is_left_of_a_page(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    plant(store, now, many(PAGE + 4, now - HOUR, "owing"))
    plant(store, now, many(3, now + 20 * SECOND, "near"))
    assert Counter(name[:4] for name in made(expansion.expand_page(now))) == {"owin": PAGE - 3, "near": 3}


def test_other_tenants_schedules_that_are_due_within_moments_share_a_page_with_what_hides_them(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    for tenant in ("acme", "globex", "hooli", "initech"):
        store.tenants.put(Tenant(tenant, now))
    near = dict.fromkeys((f"acme:near{number}" for number in range(PAGE + 4)), now - FRESH_FOR)
    plant(store, now, many(PAGE + 4, now - HOUR, "acme:owing") | near)
    single: dict[str, datetime] = {
        whole_id("globex", "in-time"): now + 20 * SECOND,
        whole_id("hooli", "stale"): now - FRESH_FOR,
        whole_id("initech", "edge"): now + SOON,
    }
    plant(store, now, single)
    chosen = made(expansion.expand_page(now))
    assert {"globex:in-time", "hooli:stale"} <= chosen
    assert "initech:edge" not in chosen
    assert Counter(name[:9] for name in chosen)["acme:near"] == PAGE - PAGE // OWING_SHARE - 2


def test_what_has_just_become_due_takes_no_place_twice(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    plant(store, now, {"just": now - FRESH_FOR} | many(PAGE - 1, now + SECOND, "near"))
    assert len(made(expansion.expand_page(now))) == PAGE


# When another page follows at once


def test_a_schedule_with_a_page_of_its_own_to_come_lets_another_page_follow_whatever_else_there_is(
    store: Store, now: datetime
) -> None:
    plant(store, now, {"dense": now + SECOND}, "FREQ=SECONDLY")
    plant(store, now, many(WORTH_PARTS, now + 2 * SECOND, "sparse"))
    expansion = Expansion(store, timeframe_seconds=600)
    first, second = (expansion.expand_page(now) for _ in range(2))
    assert (first.claimed, first.full) == (WORTH_PARTS + 1, True)
    assert (second.claimed, second.full) == (1, False)


def test_no_page_follows_for_what_reaches_half_of_the_timeframe(store: Store, now: datetime) -> None:
    plant(store, now, {"dense": now + SECOND}, "FREQ=SECONDLY")
    expansion = Expansion(store, timeframe_seconds=2 * (OCCURRENCES_A_SCHEDULE + 1))
    page = expansion.expand_page(now)
    assert (len(page.events), page.full) == (OCCURRENCES_A_SCHEDULE, False)
    assert expansion.expand_page(now).claimed == 0


@pytest.mark.parametrize(("room", "fit"), [(3, 2), (4, 2), (5, 3)])
def test_a_page_takes_schedules_until_it_has_events_enough_and_leaves_the_others_to_the_next_one(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch, room: int, fit: int
) -> None:
    monkeypatch.setattr(expanding, "OCCURRENCES_A_PAGE", room)
    plant(store, now, many(3, now + SECOND, "s"), "FREQ=SECONDLY;COUNT=2")
    expansion = Expansion(store, timeframe_seconds=600)
    page = expansion.expand_page(now)
    assert (page.claimed, page.unfit, len(page.events)) == (3, 3 - fit, 2 * fit)
    assert page.full is (fit < 3)
    assert expansion.expand_page(now).claimed == 3 - fit


# One schedule of a page beside others


def test_a_schedule_that_waits_for_a_callback_or_has_missed_some_holds_up_no_other_of_its_page(
    store: Store, now: datetime
) -> None:
    rule = "FREQ=SECONDLY;INTERVAL=10"
    edited = schedule(now, "edited", rrule=rule)
    store.schedules.insert(edited)
    expansion = Expansion(store, timeframe_seconds=60)
    expansion.expand_page(now)
    first = event(now + SECOND, "edited")
    store.claims.claim([first.id], until=now + SECOND, now=now, lease_seconds=600, worker="w1")
    assert store.schedules.revise(edited.revise(now), version=1)
    late: dict[str, Any] = {"catch_up": CatchUp.NONE, "late_after_seconds": 60}
    store.schedules.insert(schedule(now - HOUR, "missed", rrule=rule, **late))
    bent = schedule(now - HOUR, "bent")
    store.schedules.insert(bent)
    store.mongo.collection("schedules").update_one({"_id": "bent"}, {"$set": {"pinned": "NOT A RULE"}})
    for name, wait in (("missed", 1), ("bent", 2), ("edited", 3)):
        at = {"next_run_at": now - HOUR + wait * SECOND}
        store.mongo.collection("schedules").update_one({"_id": name}, {"$set": at})
    store.schedules.insert(schedule(now, "last", rrule=rule))
    page = expansion.expand_page(now)
    assert (page.claimed, made(page), page.full) == (4, {"last"}, True)
    assert stored(store, "bent").state is ScheduleState.ERROR
    # None of them stays claimed.
    assert store.mongo.collection("schedules").distinct("_id", {"owner": {"$exists": True}}) == []


def test_a_schedule_whose_missed_occurrences_were_not_written_is_released_and_no_page_follows_for_it(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: dict[str, Any] = {"catch_up": CatchUp.NONE, "late_after_seconds": 60}
    store.schedules.insert(schedule(now - HOUR, rrule="FREQ=SECONDLY;INTERVAL=10", **late))
    monkeypatch.setattr(store.missed, "settle", lambda *_: None)
    assert Expansion(store, timeframe_seconds=60).expand_page(now).full is False
    assert store.mongo.collection("schedules").count_documents({"owner": {"$exists": True}}) == 0
    assert store.mongo.collection("causes").count_documents({}) == 0


def test_a_fault_of_mongodb_in_the_middle_of_a_cut_sets_no_schedule_aside(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = schedule(now)
    store.schedules.insert(made)
    assert store.schedules.revise(made.revise(now), version=1)

    def fails(*_: Any) -> None:
        raise AutoReconnect("connection closed")

    monkeypatch.setattr(store.cancellations, "cancel_past_cut", fails)
    with pytest.raises(AutoReconnect):
        Expansion(store, timeframe_seconds=60).expand_page(now)
    assert stored(store, "s1").state is ScheduleState.ACTIVE


def test_a_page_that_has_had_its_time_ends_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = 100.0
    monkeypatch.setattr(expanding, "monotonic", lambda: seconds)
    over = deadline_after(0.5)
    assert not over()
    seconds = 100.5
    assert not over()
    seconds = 100.6
    assert over()
