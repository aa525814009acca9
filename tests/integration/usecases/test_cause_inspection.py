"""What does not happen is a cause while it lasts: late events, unserved queues, schedules without a future,
occurrences that were missed, processes that are away."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.api_key import ALL_SCOPES, StoredKey
from scheduler_app.domain.calendars import Calendar, NamedCalendar
from scheduler_app.domain.cause import Cause, CauseKind
from scheduler_app.domain.ids import whole_id
from scheduler_app.domain.lateness import CatchUp, Lateness
from scheduler_app.domain.missed import MAX_SINGLES
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.causes import from_document
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.usecases.duties import cause_inspection
from scheduler_app.usecases.duties.cause_inspection import (
    EXPIRES_SOON,
    NO_FUTURE,
    STALLED_PERIOD,
    CauseInspection,
    Fault,
)
from scheduler_app.usecases.duties.expansion import Expansion
from tests.builders import event, message, schedule

SECOND = timedelta(seconds=1)
RECEIVER = "http://127.0.0.1:9"


class Look:
    """An inspection, what it is told of processes, and the causes that it has written."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.faults: list[Fault] = []
        self.served: set[str] = set()
        self.inspection = CauseInspection(store, lambda: self.faults, self.unserved)

    def unserved(self, queues: Sequence[str]) -> list[str]:
        return [each for each in queues if each not in self.served]

    def causes(self, kind: CauseKind, *, living: bool = True) -> list[Cause]:
        rows = self.store.mongo.collection("causes").find({"kind": kind.value}).sort("since", 1)
        return [cause for row in rows if (cause := from_document(row)).is_living is living]

    def at(self, now: datetime, kind: CauseKind) -> list[Cause]:
        self.inspection.inspect(now)
        return self.causes(kind)


@pytest.fixture
def look(store: Store) -> Look:
    return Look(store)


def test_what_is_due_and_not_attempted_is_late_by_its_own_measure(
    store: Store, look: Look, now: datetime
) -> None:
    store.schedules.insert(schedule(now, "s1", tags=("nightly",)))
    patient = Lateness(late_after_seconds=300)
    store.schedules.insert(replace(schedule(now, "s2"), lateness=patient))
    hasty = Lateness(late_after_seconds=5)
    store.schedules.insert(replace(schedule(now, "s3"), lateness=hasty))
    waiting = [
        event(now, "s1", origin=RECEIVER),
        event(now, "s2", origin="http://b.test:80"),
        event(now + 50 * SECOND, "s3", origin="http://c.test:80"),
        message(now, "m1", url=f"{RECEIVER}/"),
    ]
    store.events.insert(waiting[:3], now, "made")
    store.messages.insert(waiting[3], now)
    assert {each.key.subject for each in look.at(now + 58 * SECOND, CauseKind.LATE)} == {"http://c.test:80"}
    late = {each.key.subject: each for each in look.at(now + 70 * SECOND, CauseKind.LATE)}
    assert set(late) == {RECEIVER, "http://c.test:80"}
    assert (late[RECEIVER].failed, late[RECEIVER].since) == (2, now)
    assert (late[RECEIVER].schedules.names, late[RECEIVER].tags.names) == (("s1",), ("nightly",))
    assert late[RECEIVER].error == "2 events due and not attempted"
    # Nothing but the time has passed: nothing is written.
    before = late[RECEIVER].writes
    assert look.at(now + 80 * SECOND, CauseKind.LATE)[0].writes == before
    # A worker takes them.
    ids = [each.id for each in waiting]
    store.claims.claim(ids, until=now + 90 * SECOND, now=now + 90 * SECOND, lease_seconds=60, worker="w")
    assert look.at(now + 91 * SECOND, CauseKind.LATE) == []
    assert len(look.causes(CauseKind.LATE, living=False)) == 2


def test_a_queue_that_no_worker_serves_is_told_while_events_wait_in_it(
    store: Store, look: Look, now: datetime
) -> None:
    store.schedules.insert(schedule(now, "s1", queue="eu"))
    store.events.insert([event(now + 60 * SECOND, "s1", queue="eu")], now, "made")
    [cause] = look.at(now, CauseKind.UNSERVED)
    assert (cause.key.subject, cause.failed, cause.schedules.names) == ("eu", 1, ("s1",))
    assert cause.error == "1 event in the queue eu, which no worker serves"
    look.served = {"eu"}
    assert look.at(now + SECOND, CauseKind.UNSERVED) == []


def test_a_schedule_that_its_calendar_swallows_is_stalled_and_one_of_an_instant_is_not(
    store: Store, look: Look, now: datetime
) -> None:
    six_days = Calendar.of(weekend=tuple(range(6)))
    store.calendars.insert(NamedCalendar("default", "c1", six_days, now, now))
    use = {"calendar": "c1", "on_holiday": "skip"}
    named = NamedCalendar("default", "c1", six_days, now, now)
    mondays = schedule(now, "s1", rrule="FREQ=WEEKLY;BYDAY=MO", named_calendar=named, **use)
    assert mondays.state == "finished"
    store.schedules.insert(mondays)
    over = schedule(
        now, "s2", rrule="DTSTART:20200106T000000Z\nRRULE:FREQ=WEEKLY;COUNT=1", named_calendar=named, **use
    )
    store.schedules.insert(over)
    far = now + NO_FUTURE + timedelta(days=1)
    store.schedules.insert(schedule(now, "s3", rrule=f"DTSTART:{far:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=WEEKLY"))
    store.schedules.insert(schedule(now, "s4", run_at=far))
    store.schedules.insert(schedule(now, "s5", rrule="FREQ=YEARLY"))
    stalled = {each.key.subject: each for each in look.at(now, CauseKind.STALLED)}
    assert set(stalled) == {"s1", "s3"}
    assert "its calendar closes every day" in stalled["s1"].error
    store.schedules.delete("s1", now)
    # It is looked for once a minute.
    assert len(look.at(now + SECOND, CauseKind.STALLED)) == 2
    assert [each.key.subject for each in look.at(now + STALLED_PERIOD, CauseKind.STALLED)] == ["s3"]


def test_causes_are_read_when_their_kind_is_looked_at_and_not_every_ten_seconds(
    store: Store, look: Look, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand of them took a beat 65 ms of CPU a look."""
    far = f"DTSTART:{now + NO_FUTURE + timedelta(days=1):%Y%m%dT%H%M%SZ}\nRRULE:FREQ=WEEKLY"
    store.schedules.insert_many([schedule(now, f"s{number}", rrule=far) for number in range(20)])
    assert len(look.at(now, CauseKind.STALLED)) == 20
    living, read = store.causes.living, Counter[CauseKind]()

    def noted(**which: Any) -> list[Cause]:
        found = living(**which)
        read.update(cause.key.kind for cause in found)
        return found

    monkeypatch.setattr(store.causes, "living", noted)
    look.faults = [Fault("worker", "no worker has reported")]
    for seconds in range(10, 70, 10):
        look.inspection.inspect(now + seconds * SECOND)
    assert read == {CauseKind.STALLED: 20, CauseKind.MACHINERY: 4}
    read.clear()
    look.inspection.inspect_machinery(now + 70 * SECOND)
    assert read == {CauseKind.MACHINERY: 1}


def test_what_expired_before_an_attempt_is_missed_until_a_run_succeeds(
    store: Store, look: Look, now: datetime
) -> None:
    none = Lateness(catch_up=CatchUp.NONE, late_after_seconds=60)
    hourly = schedule(now, "s1", rrule="FREQ=HOURLY", tags=("nightly",))
    store.schedules.insert(replace(hourly, lateness=none))
    later = now + timedelta(hours=5, minutes=30)
    Expansion(store, timeframe_seconds=60).expand_page(later)
    [cause] = look.at(later, CauseKind.MISSED)
    assert (cause.key.subject, cause.failed, cause.tags.names) == ("s1", 6, ("nightly",))
    assert cause.error == "6 occurrences have expired before an attempt was made"
    at = later + SECOND
    made = event(at, "s1")
    store.events.insert([made], at, "made")
    token, _ = store.claims.claim([made.id], until=at, now=at, lease_seconds=60, worker="w")
    store.outcomes.record(
        [OutcomeRecord(made.id, token, State.COMPLETED, "said", None, {"number": 1, "started_at": at}, at)]
    )
    assert look.at(later + 2 * SECOND, CauseKind.MISSED) == []


def test_missed_occurrences_that_a_record_tells_of_are_counted_with_the_others(
    store: Store, look: Look, now: datetime
) -> None:
    none = Lateness(catch_up=CatchUp.NONE, late_after_seconds=60)
    store.schedules.insert(replace(schedule(now), lateness=none))
    later = now + timedelta(seconds=MAX_SINGLES + 600)
    expansion = Expansion(store, timeframe_seconds=60)
    while expansion.expand_page(later).full:
        pass
    [cause] = look.at(later, CauseKind.MISSED)
    told = store.mongo.collection("events").find({"state": "expired"})
    counts = [row["missed"]["count"] if "missed" in row else 1 for row in told]
    assert cause.failed == sum(counts) == MAX_SINGLES + 600 - 61
    assert max(counts) > 1


def test_a_part_that_is_missing_at_two_looks_is_machinery(store: Store, look: Look, now: datetime) -> None:
    look.faults = [Fault("worker", "no worker has reported")]
    assert look.at(now, CauseKind.MACHINERY) == []
    [cause] = look.at(now + 10 * SECOND, CauseKind.MACHINERY)
    assert (cause.key.subject, cause.error) == ("worker", "no worker has reported")
    look.faults = []
    assert look.at(now + 20 * SECOND, CauseKind.MACHINERY) == []
    assert len(look.causes(CauseKind.MACHINERY, living=False)) == 1


def test_the_first_look_of_a_process_does_not_end_what_is_still_missing(
    store: Store, look: Look, now: datetime
) -> None:
    look.faults = [Fault("beat", "no beat has reported"), Fault("worker", "no worker has reported")]
    look.at(now, CauseKind.MACHINERY)
    assert len(look.at(now + SECOND, CauseKind.MACHINERY)) == 2
    begun = Look(store)
    begun.faults = look.faults[1:]
    [cause] = begun.at(now + 2 * SECOND, CauseKind.MACHINERY)
    assert cause.key.subject == "worker"
    assert [each.key.subject for each in look.causes(CauseKind.MACHINERY, living=False)] == ["beat"]


def a_key(
    store: Store, name: str, made: datetime, ends: datetime | None, *, tenant: str = "acme"
) -> StoredKey:
    key = StoredKey(whole_id("acme", name), name, ALL_SCOPES, made, "0" * 64, expires_at=ends)
    assert store.api_keys.insert(key)
    return key


def test_a_key_is_told_of_before_it_expires_and_until_it_is_deleted(
    store: Store, look: Look, now: datetime
) -> None:
    ends = now + 4 * EXPIRES_SOON
    key = a_key(store, "deploys", now, ends)
    a_key(store, "for-a-day", ends - 2 * SECOND, ends)
    a_key(store, "for-ever", now, None)
    assert look.at(ends - EXPIRES_SOON - SECOND, CauseKind.KEY_EXPIRING) == []
    at = ends - EXPIRES_SOON + STALLED_PERIOD
    [cause] = look.at(at, CauseKind.KEY_EXPIRING)
    assert (cause.key.tenant, cause.key.subject) == ("acme", key.id)
    assert cause.error == "the API key deploys expires at 2026-03-30T12:00:00Z"
    [cause] = look.at(ends + STALLED_PERIOD, CauseKind.KEY_EXPIRING)
    assert cause.error == "the API key deploys expired at 2026-03-30T12:00:00Z"
    assert store.api_keys.delete(key.id)
    assert look.at(ends + 2 * STALLED_PERIOD, CauseKind.KEY_EXPIRING) == []
    assert [each.key.subject for each in look.causes(CauseKind.KEY_EXPIRING, living=False)] == [key.id]


def test_a_key_that_expired_long_ago_is_told_of_no_more(store: Store, look: Look, now: datetime) -> None:
    ends = now + 4 * EXPIRES_SOON
    a_key(store, "deploys", now, ends)
    assert len(look.at(ends, CauseKind.KEY_EXPIRING)) == 1
    assert look.at(ends + EXPIRES_SOON + SECOND, CauseKind.KEY_EXPIRING) == []


def test_looks_take_turns_where_more_keys_expire_than_one_reads(
    store: Store, look: Look, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cause_inspection, "KEYS_A_LOOK", 2)
    ends = now + 4 * EXPIRES_SOON
    keys = [a_key(store, f"k{number}", now, ends + (number // 3) * SECOND) for number in range(5)]
    told = [{key.id for key in keys[:count]} for count in (2, 4, 5, 5)]
    at = ends
    for expected in told:
        assert {each.key.subject for each in look.at(at, CauseKind.KEY_EXPIRING)} == expected
        at += STALLED_PERIOD
    assert store.api_keys.delete(keys[0].id)
    assert store.api_keys.delete(keys[4].id)
    for _ in range(3):
        found = look.at(at, CauseKind.KEY_EXPIRING)
        assert {each.key.subject for each in found} == {key.id for key in keys[1:4]}
        at += STALLED_PERIOD
