"""The witness over real documents: what was owed, what is missing, and what nothing explains."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.calendars import Calendar, CalendarUse, NamedCalendar, NamedDate
from scheduler_app.domain.cause import CauseKind
from scheduler_app.domain.ids import TENANT, name_of
from scheduler_app.domain.ledger import HOUR, Account, OutcomeCounts, verify
from scheduler_app.domain.schedule import Pause, Schedule, ScheduleState
from scheduler_app.domain.states import Kind
from scheduler_app.domain.tenant import Tenant
from scheduler_app.store import Store
from scheduler_app.store.ledger import History
from scheduler_app.usecases.duties.cause_inspection import CauseInspection
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.witness import process
from scheduler_app.witness.accounting import SCHEDULES_A_PAGE, account_of
from scheduler_app.witness.process import MOST_MADE_UP, Witness
from tests.builders import event, message, schedule

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
EVERY_MINUTE = "FREQ=MINUTELY;BYSECOND=0"


def made(store: Store, schedule_id: str = "s1", at: datetime = NOON - HOUR, **fields: Any) -> Schedule:
    one = schedule(at, schedule_id, **{"rrule": EVERY_MINUTE} | fields)
    assert store.schedules.insert(one)
    return one


def expand(store: Store, until: datetime) -> None:
    """Makes every event up to an instant, as beats do."""
    duty = Expansion(store, timeframe_seconds=3600)
    now = NOON - HOUR
    while now < until:
        while duty.expand_page(now).claimed:
            pass
        now += HOUR / 2


def account(store: Store, hour: datetime = NOON, tenant: str = TENANT) -> Account:
    return account_of(store.history, hour)[tenant]


def events(store: Store) -> Any:
    return store.mongo.collection("events")


def end(store: Store, ids: Sequence[str], state: str) -> None:
    """Ends events as deliveries do, for what the witness reads of them."""
    change = {"$set": {"state": state}, "$unset": {"due_at": ""}}
    assert events(store).update_many({"_id": {"$in": list(ids)}}, change).modified_count == len(ids)


def test_an_hour_is_owed_what_the_rules_name(store: Store) -> None:
    made(store)
    made(store, "s2", rrule="FREQ=HOURLY;BYMINUTE=15;BYSECOND=0")
    expand(store, NOON + HOUR)
    end(store, [f"s1-1-20260302T12{minute:02d}00Z" for minute in range(58)], "completed")
    end(store, ["s1-1-20260302T125800Z"], "error")
    found = account(store).counts
    assert (found.owed, found.completed, found.error, found.open) == (61, 58, 1, 2)
    assert (found.missing, found.unexplained, found.unjudged) == (0, 0, 0)


def test_deleted_removed_and_doubled_events_are_all_found(store: Store) -> None:
    for number in range(10):
        made(store, f"s{number}")
    expand(store, NOON + HOUR)
    gone = [f"s{number}-1-20260302T12{number:02d}00Z" for number in range(10)]
    assert events(store).delete_many({"_id": {"$in": gone}}).deleted_count == 10
    doubled = [
        *(event(NOON + number * MINUTE, f"s{number}", revision=2) for number in range(5)),
        *(event(NOON + number * MINUTE + timedelta(seconds=30), f"s{number}") for number in range(5)),
    ]
    store.events.insert(doubled, NOON, "doubled")
    found = account(store)
    assert found.counts.missing == 10
    assert set(found.missing) == set(gone)
    assert found.counts.unexplained == 10
    assert set(found.unexplained) == {each.id for each in doubled}


def test_an_event_of_a_schedule_that_nobody_knows_is_unexplained(store: Store) -> None:
    made(store)
    expand(store, NOON + HOUR)
    store.events.insert([event(NOON + MINUTE, "nobody")], NOON, "made")
    found = account(store).counts
    assert (found.missing, found.unexplained) == (0, 1)


def test_messages_and_calls_by_hand_are_owed_because_they_were_asked_for(store: Store) -> None:
    made(store, rrule="FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=1;BYHOUR=0;BYMINUTE=0;BYSECOND=0")
    store.messages.insert(message(NOON + MINUTE), NOON)
    store.messages.insert(message(NOON + HOUR, "m2"), NOON)
    by_hand = event(NOON + MINUTE)._replace(id="s1-manual-1", kind=Kind.MANUAL)
    store.events.insert([by_hand], NOON, "by hand")
    found = account(store).counts
    assert (found.owed, found.open, found.unexplained) == (2, 2, 0)


def revised(store: Store, one: Schedule, at: datetime, **changes: Any) -> Schedule:
    changed = replace(one.revise(at, **changes), version=one.version + 1)
    store.schedules.keep_revision(one.id)
    assert store.schedules.revise(changed, version=one.version)
    return changed


def test_a_schedule_owes_what_each_of_its_revisions_named_up_to_its_cut(store: Store) -> None:
    one = made(store)
    expand(store, NOON + HOUR)
    cut = NOON + 10 * MINUTE
    other = schedule(NOON - HOUR, "s1", rrule="FREQ=MINUTELY;INTERVAL=5;BYSECOND=30").trigger
    revised(store, one, cut, trigger=other)
    store.cancellations.cancel_past_cut("s1", 2, cut, cut, "changed")
    expand(store, NOON + HOUR)
    found = account(store).counts
    # Eleven minutes of the old rule, and ten times five minutes of the new one.
    assert (found.owed, found.missing, found.unexplained) == (21, 0, 0)
    events(store).delete_one({"_id": "s1-1-20260302T120500Z"})
    assert account(store).missing == ("s1-1-20260302T120500Z",)


def test_nothing_is_owed_while_a_schedule_is_paused(store: Store) -> None:
    one = made(store)
    paused = revised(store, one, NOON + 10 * MINUTE, state=ScheduleState.PAUSED, pause=Pause())
    revised(store, paused, NOON + 50 * MINUTE, state=ScheduleState.ACTIVE)
    expand(store, NOON + HOUR)
    store.events.insert([event(NOON + number * MINUTE) for number in range(11)], NOON, "made")
    found = account(store).counts
    assert (found.owed, found.missing, found.unexplained) == (20, 0, 0)


def test_a_pause_that_ends_by_itself_is_known_too(store: Store) -> None:
    one = made(store, at=NOON - HOUR)
    pause = Pause(until=NOON + 30 * MINUTE)
    paused = revised(store, one, NOON - MINUTE, state=ScheduleState.PAUSED, pause=pause)
    assert store.pauses.end([paused.resumed_by_itself()]) == 1
    expand(store, NOON + HOUR)
    found = account(store).counts
    assert (found.owed, found.missing, found.unexplained) == (30, 0, 0)


def test_what_a_deleted_schedule_owed_before_is_judged_and_nothing_after(store: Store) -> None:
    made(store)
    expand(store, NOON + HOUR)
    store.schedules.delete("s1", NOON + 20 * MINUTE)
    store.cancellations.cancel_all("s1", 1, NOON + 20 * MINUTE, "deleted")
    found = account(store).counts
    assert (found.owed, found.cancelled, found.missing, found.unexplained) == (21, 21, 0, 0)


def test_the_days_of_a_calendar_are_those_of_the_revision(store: Store) -> None:
    closed = Calendar.of(dates=(NamedDate(NOON.date()),), weekend=())
    named = NamedCalendar(TENANT, "plant", closed, NOON, NOON)
    assert store.calendars.insert(named)
    use = CalendarUse("plant", "skip", 1, known=named)
    one = replace(schedule(NOON - HOUR, "s1", rrule=EVERY_MINUTE), calendar=use)
    assert store.schedules.insert(replace(one, next_run_at=NOON))
    open_ = Calendar.of(dates=(NamedDate(NOON.date() + timedelta(days=9)),), weekend=())
    assert store.calendars.update(replace(named, calendar=open_), NOON, version=1)
    current = store.schedules.get("s1")
    assert isinstance(current, Schedule)
    revised(store, replace(current, version=one.version), NOON + 30 * MINUTE)
    expand(store, NOON + HOUR)
    found = account(store).counts
    assert (found.owed, found.missing, found.unexplained, found.unjudged) == (29, 0, 0, 0)


def test_a_rule_that_cannot_be_judged_is_counted_and_alarms_nobody(store: Store) -> None:
    made(store, rrule="RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=2;BYHOUR=12;SKIP=BACKWARD")
    made(store, "s2")
    expand(store, NOON + HOUR)
    found = account(store)
    assert (found.counts.unjudged, found.counts.missing, found.counts.unexplained) == (1, 0, 0)
    assert found.unjudged[0].startswith("s1: ")


def test_a_corrupt_schedule_harms_only_itself(store: Store) -> None:
    made(store)
    made(store, "s2")
    expand(store, NOON + HOUR)
    store.mongo.collection("schedules").update_one({"_id": "s1"}, {"$set": {"revised_at": "noon"}})
    found = account(store)
    assert (found.counts.unjudged, found.counts.missing, found.counts.owed) == (1, 0, 120)


def test_more_schedules_than_a_page_has_are_all_judged(store: Store) -> None:
    number = SCHEDULES_A_PAGE + 3
    for each in range(number):
        made(store, f"s{each}", rrule="FREQ=HOURLY;BYMINUTE=1;BYSECOND=0")
    rests: list[None] = []
    found = account_of(store.history, NOON, rest=lambda: rests.append(None))[TENANT]
    assert found.counts.missing == number
    assert len(rests) >= 2


def test_only_the_revisions_of_the_hour_are_read_of_a_schedule_that_is_edited_all_the_time(
    store: Store,
) -> None:
    one = made(store)
    for number in range(5):
        one = revised(store, one, NOON + number * HOUR)
    ended = store.history.ended_revisions(["s1"], NOON - HOUR, NOON + HOUR)["s1"]
    assert [row["revision"] for row in ended] == [1, 2]


def test_an_old_hour_is_looked_at_less_often(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    made(store)
    expand(store, NOON + HOUR)
    looked: list[datetime] = []

    def account(history: History, hour: datetime, **_: Any) -> dict[str, Account]:
        looked.append(hour)
        return account_of(history, hour)

    ours = witness(store)
    ours.turn(NOON + HOUR + 10 * MINUTE)
    monkeypatch.setattr(process, "account_of", account)
    monkeypatch.setattr(ours, "_hours_to_judge", lambda _: [])
    for minutes in range(0, 60, 10):
        ours.turn(NOON + 2 * HOUR + minutes * MINUTE)
    assert looked == [NOON] * 6
    looked.clear()
    for minutes in range(0, 24 * 60, 10):
        ours.turn(NOON + timedelta(days=5) + minutes * MINUTE)
    # After five days, every five hours or more.
    assert len(looked) == 5


@pytest.mark.parametrize("worked", [0.1, 0.3])
def test_the_witness_rests_three_times_as_long_as_it_works(
    monkeypatch: pytest.MonkeyPatch, worked: float
) -> None:
    clock, slept = [0.0], list[float]()
    monkeypatch.setattr(process, "monotonic", lambda: clock[0])
    monkeypatch.setattr("time.sleep", slept.append)
    rest = process.paced()
    for _ in range(3):
        clock[0] += worked
        rest()
    assert slept == pytest.approx([3 * worked] * 3)


def witness(store: Store, *, days: int = 7) -> Witness:
    kept = timedelta(days=days)
    return Witness(store.history, store.ledger, store.causes, store.tenants, look_back=kept)


def test_an_hour_has_its_line_some_minutes_later_and_a_later_one_when_events_end(store: Store) -> None:
    made(store)
    expand(store, NOON + HOUR)
    ours = witness(store)
    ours.turn(NOON + HOUR + 5 * MINUTE)
    assert store.ledger.of_hour(TENANT, NOON) is None
    ours.turn(NOON + HOUR + 10 * MINUTE)
    first = store.ledger.of_hour(TENANT, NOON)
    assert first is not None
    assert (first.turn, first.account.counts.open) == (1, 60)
    ours.turn(NOON + HOUR + 11 * MINUTE)
    assert store.ledger.of_hour(TENANT, NOON) == first
    ids = [row["_id"] for row in events(store).find({"run_time": {"$gte": NOON, "$lt": NOON + HOUR}})]
    end(store, ids, "completed")
    ours.turn(NOON + HOUR + 25 * MINUTE)
    second = store.ledger.of_hour(TENANT, NOON)
    assert second is not None
    assert (second.turn, second.account.counts.completed) == (2, 60)
    assert store.ledger.unsettled(NOON, limit=10) == []
    assert verify(store.ledger.chain(TENANT, 0, limit=100)).lines == second.number


def test_what_is_missing_is_told_as_a_failure_until_an_hour_is_complete_again(store: Store) -> None:
    made(store)
    expand(store, NOON + HOUR)
    gone = [row["_id"] for row in events(store).find({"run_time": {"$gte": NOON}}).limit(3)]
    events(store).delete_many({"_id": {"$in": gone}})
    ours = witness(store)
    for minute in (10, 25):
        ours.turn(NOON + HOUR + minute * MINUTE)
    (cause,) = store.causes.living()
    assert (cause.key.kind, cause.key.failure, name_of(cause.key.subject)) == ("missed", "ledger", "ledger")
    assert cause.error == "of the hour from 2026-03-02T12:00:00Z 3 events are missing, 0 unexplained"
    # Beats do not end it, and a line of an older hour does not.
    CauseInspection(store, list, lambda queues: []).inspect(NOON + HOUR + 30 * MINUTE)
    ours._write(NOON - HOUR, {TENANT: Account(OutcomeCounts(owed=1, completed=1))}, NOON + HOUR)
    assert [each.id for each in store.causes.living(kinds=[CauseKind.MISSED])] == [cause.id]
    expand(store, NOON + 2 * HOUR)
    ours.turn(NOON + 2 * HOUR + 10 * MINUTE)
    assert store.causes.living(kinds=[CauseKind.MISSED]) == []


def test_an_hour_whose_events_its_tenant_keeps_no_longer_is_not_judged_again(store: Store) -> None:
    made(store)
    expand(store, NOON + HOUR)
    ours = witness(store)
    ours.turn(NOON + HOUR + 10 * MINUTE)
    store.tenants.put(Tenant(TENANT, None, retention_days=1))
    events(store).delete_many({"run_time": {"$lt": NOON + HOUR}})
    ours.turn(NOON + 24 * HOUR + 30 * MINUTE)
    line = store.ledger.of_hour(TENANT, NOON)
    assert line is not None
    assert (line.turn, line.account.counts.missing) == (1, 0)


def test_an_hour_whose_events_the_installation_keeps_no_longer_is_neither_judged_again_nor_made_up(
    store: Store,
) -> None:
    made(store, rrule="FREQ=HOURLY;BYMINUTE=15;BYSECOND=0")
    expand(store, NOON + HOUR)
    witness(store, days=1).turn(NOON + HOUR + 10 * MINUTE)
    events(store).delete_many({})
    store.messages.insert(message(NOON), NOON)
    witness(store, days=1).turn(NOON + 40 * HOUR + 30 * MINUTE)
    first, *lines = store.ledger.chain(TENANT, 0, limit=100)
    assert (first.hour, first.account.counts.missing) == (NOON, 0)
    # What was withdrawn an hour before its time is removed an hour before the others.
    assert [line.hour for line in lines] == [NOON + number * HOUR for number in range(18, 40)]


def test_a_changed_line_of_the_ledger_is_found(store: Store) -> None:
    made(store)
    expand(store, NOON + 4 * HOUR)
    ours = witness(store)
    for hour in range(4):
        ours.turn(NOON + (hour + 1) * HOUR + 10 * MINUTE)
    lines = store.ledger.chain(TENANT, 0, limit=100)
    assert verify(lines).wrong is None
    store.mongo.collection("ledger").update_one({"number": 2}, {"$inc": {"counts.completed": 1}})
    assert str(verify(store.ledger.chain(TENANT, 0, limit=100)).wrong).startswith("line 2 ")


def test_two_witnesses_write_each_line_once(store: Store) -> None:
    made(store)
    expand(store, NOON + 3 * HOUR)
    both = witness(store), witness(store)
    for hour in range(1, 4):
        for each in both:
            each.turn(NOON + hour * HOUR + 10 * MINUTE)
    lines = store.ledger.chain(TENANT, 0, limit=100)
    assert len({(line.hour, line.turn) for line in lines}) == len(lines)
    assert verify(lines).wrong is None


def test_hours_in_which_no_witness_ran_are_made_up_and_bounded(store: Store) -> None:
    made(store, rrule="FREQ=DAILY;BYHOUR=0;BYMINUTE=0;BYSECOND=0")
    store.messages.insert(message(NOON), NOON)
    witness(store).turn(NOON + HOUR + 10 * MINUTE)
    later = NOON + (MOST_MADE_UP + 100) * HOUR
    witness(store).turn(later + 10 * MINUTE)
    hours = {line.hour for line in store.ledger.chain(TENANT, 1, limit=1_000)}
    assert len(hours) == MOST_MADE_UP
    assert max(hours) == later - HOUR


@pytest.mark.parametrize("collection", ["ended_revisions", "ended_calendars", "ledger"])
def test_what_the_witness_keeps_is_removed_in_time(store: Store, collection: str) -> None:
    found = store.mongo.collection(collection).index_information()
    assert found["retention_v1"]["expireAfterSeconds"] > 0
