"""Occurrences become events: with a given `now`, on the real store."""

import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from pymongo.errors import AutoReconnect, OperationFailure

from scheduler_app.config import Settings
from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.errors import Conflict
from scheduler_app.domain.event import Event
from scheduler_app.domain.http_action import MAX_BODY_BYTES, BodyKind, RequestBody, http_action
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.lateness import CatchUp
from scheduler_app.domain.schedule import BeforeCut, Schedule, ScheduleState
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.store.paging import PageRequest
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.usecases.duties.expansion import (
    NEXT_NEEDED,
    OCCURRENCES_A_PAGE,
    OCCURRENCES_A_SCHEDULE,
    OCCURRENCES_AN_EDIT,
    SCHEDULES_A_PAGE,
    WORTH_PARTS,
    Expansion,
    begin_revision,
    cancel_late_inserts,
)
from tests.builders import event, schedule
from tests.documents import event_document
from tests.processes import PATIENCE_SECONDS

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def expansion(store: Store) -> Expansion:
    return Expansion(store, timeframe_seconds=60)


def stored(store: Store, schedule_id: str = "s1") -> Schedule:
    found = store.schedules.get(schedule_id)
    assert isinstance(found, Schedule)
    return found


def listed(store: Store, *states: State, schedule_id: str = "s1") -> list[dict[str, Any]]:
    """The schedule's events in these states (those that wait, by default), oldest first."""
    page = store.event_lists.page(
        TENANT, PageRequest(limit=500), schedule_id=schedule_id, states=states or (State.READY_QUEUE,)
    )
    return [event_document(store, each.id) for each in page.rows[::-1]]


def claim(
    store: Store, now: datetime, *, lease_seconds: float
) -> tuple[str, list[Schedule | CorruptSchedule]]:
    """A beat's claim of what is ready within the next minute."""
    before = now + MINUTE
    ids = [each.id for each in store.cursors.ready_for_expansion(before, limit=10)]
    return store.cursors.claim_for_expansion(ids, before, lease_seconds=lease_seconds)


def times(store: Store, *states: State) -> list[datetime]:
    return [row["run_time"] for row in listed(store, *states)]


def test_a_schedule_is_filled_to_the_timeframe_and_then_left_alone(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    store.schedules.insert(schedule(now, rrule="FREQ=SECONDLY;INTERVAL=10"))
    page = expansion.expand_page(now)
    assert (len(page.events), page.full) == (6, False)
    assert times(store) == [now + (1 + 10 * i) * SECOND for i in range(6)]
    assert stored(store).next_run_at == now + 61 * SECOND
    assert expansion.expand_page(now + 20 * SECOND).claimed == 0
    assert len(expansion.expand_page(now + 40 * SECOND).events) == 4


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=SECONDLY;COUNT=150",
        "FREQ=SECONDLY;INTERVAL=7;COUNT=20",
        "FREQ=MINUTELY;BYSECOND=5,25,50;COUNT=8",
        "FREQ=SECONDLY;COUNT=100\nRRULE:FREQ=SECONDLY;INTERVAL=9;COUNT=15",
    ],
)
def test_a_rule_with_a_count_goes_on_page_after_page(
    store: Store, expansion: Expansion, now: datetime, rule: str
) -> None:
    # What stands between two pages is a checkpoint, which MongoDB gives back with numbers of its own class.
    made = schedule(now, rrule=f"DTSTART:{now:%Y%m%dT%H%M%SZ}\nRRULE:{rule}")
    store.schedules.insert(made)
    for half_minutes in range(8):
        page = expansion.expand_page(now + half_minutes * 30 * SECOND)
        if page.events and stored(store).next_run_at is not None:
            last = page.events[-1].run_time
            assert stored(store).checkpoint == made.recurrence().checkpoint(last)
    assert (stored(store).next_run_at is None) is (stored(store).checkpoint is None)
    owed = made.recurrence().between(now, now + 4 * MINUTE)
    assert times(store) == [instant for instant in owed if instant > made.created_at]
    assert len(owed) > 7


def test_a_worker_reads_a_schedule_anew_after_an_edit_and_not_after_its_expansion(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    store.schedules.insert(schedule(now))
    (first,) = store.schedules.for_delivery(["s1"]).values()
    before = stored(store)
    expansion.expand_page(now)
    moved = stored(store)
    assert moved.next_run_at != before.next_run_at
    (same,) = store.schedules.for_delivery(["s1"]).values()
    assert same is first
    assert store.schedules.update(replace(moved, name="other"), version=1)
    (edited,) = store.schedules.for_delivery(["s1"]).values()
    assert isinstance(edited, Schedule)
    assert edited.name == "other"


def test_a_schedule_whose_next_occurrence_is_far_off_costs_nothing(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    store.schedules.insert(schedule(now, rrule="DTSTART:20260401T000000Z\nRRULE:FREQ=YEARLY"))
    assert expansion.expand_page(now).claimed == 0


def test_a_dense_rule_is_expanded_in_bounded_pages(store: Store, now: datetime) -> None:
    expansion = Expansion(store, timeframe_seconds=600)
    store.schedules.insert(schedule(now))
    page = expansion.expand_page(now)
    assert (len(page.events), page.full) == (OCCURRENCES_A_SCHEDULE, True)
    while page.full:
        page = expansion.expand_page(now)
    made = times(store)
    assert made == [now + (1 + i) * SECOND for i in range(len(made))]
    assert stored(store).next_run_at == made[-1] + SECOND
    assert made[-1] >= now + 300 * SECOND


def test_a_page_that_ends_early_has_filled_those_with_the_least_left(store: Store, now: datetime) -> None:
    few, fit = WORTH_PARTS - 10, OCCURRENCES_A_PAGE // OCCURRENCES_A_SCHEDULE
    names = [f"s{number:02}" for number in range(few)]
    for wait, name in enumerate(reversed(names), 1):
        start = f"DTSTART:{now + wait * SECOND:%Y%m%dT%H%M%SZ}"
        store.schedules.insert(schedule(now, name, rrule=f"{start}\nRRULE:FREQ=SECONDLY"))
    page = Expansion(store, timeframe_seconds=600).expand_page(now)
    assert {event.schedule_id for event in page.events} == set(names[-fit:])


def test_a_beat_learns_how_many_schedules_fill_a_page(store: Store, now: datetime) -> None:
    expansion = Expansion(store, timeframe_seconds=600)
    many = 4 * WORTH_PARTS
    store.schedules.insert_many([schedule(now, f"s{number}") for number in range(many)])
    first = expansion.expand_page(now)
    fit = OCCURRENCES_A_PAGE // OCCURRENCES_A_SCHEDULE
    assert first.claimed == many
    assert many - first.unfit == len(first.events) / OCCURRENCES_A_SCHEDULE == pytest.approx(fit, abs=4)
    second = expansion.expand_page(now)
    assert (second.claimed, second.full) == (WORTH_PARTS, True)
    # Of rules that fire less often more fit.
    store.mongo.collection("schedules").delete_many({})
    rule = "FREQ=SECONDLY;INTERVAL=60"
    store.schedules.insert_many([schedule(now, f"t{number}", rrule=rule) for number in range(many)])
    claimed = [expansion.expand_page(now).claimed for _ in range(2)]
    assert claimed == [WORTH_PARTS * 5 // 4, WORTH_PARTS * 5 // 4 * 5 // 4]


def test_two_beats_expand_everything_between_them_without_waiting_for_another_tick(
    store: Store, now: datetime
) -> None:
    rule = "FREQ=SECONDLY;INTERVAL=60"
    many = [schedule(now, f"s{number}", rrule=rule) for number in range(2 * SCHEDULES_A_PAGE)]
    store.schedules.insert_many(many)
    together = threading.Barrier(2)

    def expand() -> int:
        expansion = Expansion(store, timeframe_seconds=60)
        together.wait(PATIENCE_SECONDS)
        claimed = 0
        while True:
            page = expansion.expand_page(now)
            claimed += page.claimed
            if not page.full:
                return claimed

    with ThreadPoolExecutor(2) as beats:
        futures = [beats.submit(expand) for _ in range(2)]
        shares = [future.result() for future in futures]
    assert sum(shares) == len(many)
    assert store.events.living_by_state()[State.READY_QUEUE] == len(many)


def test_a_crash_between_events_and_cursor_expands_the_same_ids_again(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    made = schedule(now, rrule="FREQ=SECONDLY;COUNT=5")
    store.schedules.insert(made)
    store.events.insert([event(now + (1 + i) * SECOND) for i in range(3)], now, "before the crash")
    expansion.expand_page(now)
    assert times(store) == [now + (1 + i) * SECOND for i in range(5)]


@pytest.mark.parametrize("answer_lost", [False, True], ids=["before-its-effect", "after-its-effect"])
def test_the_cursor_stands_still_until_the_events_are_written(
    store: Store, expansion: Expansion, now: datetime, monkeypatch: pytest.MonkeyPatch, *, answer_lost: bool
) -> None:
    store.schedules.insert(schedule(now, rrule="FREQ=SECONDLY;COUNT=5"))
    before, insert = stored(store).next_run_at, store.events.insert

    def failing(*given: Any) -> int:
        if answer_lost:
            insert(*given)
        raise AutoReconnect("connection closed")

    with monkeypatch.context() as patch:
        patch.setattr(store.events, "insert", failing)
        with pytest.raises(AutoReconnect):
            expansion.expand_page(now)
    assert stored(store).next_run_at == before
    assert len(times(store)) == (5 if answer_lost else 0)
    # Its claim runs out, and the next beat makes what is owed.
    store.mongo.collection("schedules").update_one({}, {"$set": {"lease_until": now - 60 * SECOND}})
    assert expansion.expand_page(now).claimed == 1
    assert times(store) == [now + (1 + i) * SECOND for i in range(5)]


def test_a_cut_that_mongodb_does_not_answer_for_waits_and_takes_no_occurrences_of_others(
    store: Store, expansion: Expansion, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.schedules.insert(replace(schedule(now, "sound"), next_run_at=now))
    edited = replace(schedule(now, "edited"), revision=2, revised_at=now, cut_pending=True)
    store.schedules.insert(edited)

    def failing(*_: Any) -> None:
        raise AutoReconnect("connection closed")

    with monkeypatch.context() as patch:
        patch.setattr(store.cancellations, "cancel_past_cut", failing)
        with pytest.raises(AutoReconnect):
            expansion.expand_page(now)
    # An occurrence of the sound one, of the claim's own time, is not taken for one of the edited one.
    assert listed(store, schedule_id="edited") == []
    assert stored(store, "edited").cut_pending
    assert stored(store, "edited").state is ScheduleState.ACTIVE


def test_a_schedule_whose_events_mongodb_rejects_is_set_aside_and_the_others_go_on(
    store: Store, expansion: Expansion, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.schedules.insert_many([schedule(now, name, rrule="FREQ=SECONDLY;COUNT=2") for name in "abcd"])
    insert = store.events.insert

    def rejecting(events: Sequence[Event], *rest: Any) -> int:
        if any(each.schedule_id in ("c", "alone") for each in events):
            raise OperationFailure("Document failed validation", 121)
        return insert(events, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(store.events, "insert", rejecting)
        expansion.expand_page(now)
        store.schedules.insert(schedule(now, "alone"))
        assert expansion.expand_page(now).claimed == 1
    assert stored(store, "alone").state is ScheduleState.ERROR
    made = store.mongo.collection("events").distinct("schedule_id")
    assert sorted(made) == ["a", "b", "d"]
    refused = stored(store, "c")
    assert refused.state is ScheduleState.ERROR
    assert refused.next_run_at is None
    assert refused.reason == "its events cannot be stored: Document failed validation"
    for name in "abd":
        assert (stored(store, name).state, stored(store, name).next_run_at) == (ScheduleState.ACTIVE, None)


def test_a_fault_that_is_no_schedule_s_sets_none_aside(
    store: Store, expansion: Expansion, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.schedules.insert_many([schedule(now, name) for name in "ab"])

    def rejecting(*_: Any) -> int:
        raise OperationFailure("a bad expression", 9)

    monkeypatch.setattr(store.events, "insert", rejecting)
    with pytest.raises(OperationFailure):
        expansion.expand_page(now)
    assert {stored(store, name).state for name in "ab"} == {ScheduleState.ACTIVE}


@pytest.mark.parametrize(
    "change",
    [{"v": 99}, {"trigger": {"kind": "lunar"}, "rrule": None, "pinned": "DTSTART:20260101T000000Z"}],
    ids=["version", "trigger"],
)
def test_a_schedule_that_a_newer_release_wrote_is_left_to_its_processes(
    store: Store, expansion: Expansion, now: datetime, change: dict[str, Any]
) -> None:
    """One whose claim tells that is released at once."""
    store.schedules.insert_many([schedule(now, name) for name in ("newer", "s1")])
    documents = store.mongo.collection("schedules")
    documents.update_one({"_id": "newer"}, {"$set": change})
    before = documents.find_one({"_id": "newer"})
    page = expansion.expand_page(now)
    assert {each.schedule_id for each in page.events} == {"s1"}
    assert before is not None
    after = documents.find_one({"_id": "newer"})
    assert after is not None
    assert (after["state"], after["next_run_at"]) == ("active", before["next_run_at"])
    assert "owner" not in after


def test_what_the_old_rule_owes_beyond_what_an_edit_makes_is_left_to_beats_as_a_range(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    made = schedule(now)
    store.schedules.insert(made)
    until = now + OCCURRENCES_AN_EDIT * SECOND
    whole = expansion.expand_up_to(made, until)
    assert (len(whole.events), whole.left_to_beats) == (OCCURRENCES_AN_EDIT, None)
    assert len(times(store)) == OCCURRENCES_AN_EDIT
    store.mongo.collection("events").delete_many({})
    left = expansion.expand_up_to(made, until + SECOND).left_to_beats
    assert left is not None
    assert (left.revision, left.next_run_at, left.until) == (1, now + SECOND, until + SECOND)
    assert times(store) == []
    # More than may be counted at one time.
    assert expansion.expand_up_to(made, now + timedelta(days=13)).left_to_beats is not None
    (single,) = expansion.expand_up_to(made, now + SECOND).events
    assert single.run_time == now + SECOND
    paused = replace(made, state=ScheduleState.PAUSED)
    assert expansion.expand_up_to(paused, until) == BeforeCut()
    assert expansion.expand_up_to(replace(made, next_run_at=until + SECOND), until) == BeforeCut()
    assert expansion.expand_up_to(replace(made, next_run_at=None), until) == BeforeCut()


def test_an_edit_during_a_callback_of_the_revision_before_is_a_conflict(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    before = schedule(now, rrule="FREQ=SECONDLY;INTERVAL=10")
    store.schedules.insert(before)
    expansion.expand_page(now)
    first = event(now + SECOND)
    token, _ = store.claims.claim([first.id], until=now + SECOND, now=now, lease_seconds=25, worker="w1")
    assert store.schedules.revise(before.revise(now), version=1)
    with pytest.raises(Conflict, match="waits for a callback in flight"):
        expansion.expand_up_to(stored(store), now + 30 * SECOND)
    store.outcomes.record([OutcomeRecord(first.id, token, State.COMPLETED, "", None, {"number": 1}, now)])
    owed = expansion.expand_up_to(stored(store), now + 30 * SECOND)
    assert [each.run_time for each in owed.events] == [now + 11 * SECOND, now + 21 * SECOND]


def test_a_page_of_many_schedules_is_filled_in_parts_and_misses_none(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    rule = "FREQ=SECONDLY;INTERVAL=20"
    many = [schedule(now, f"s{number}", rrule=rule) for number in range(2 * WORTH_PARTS + 1)]
    store.schedules.insert_many(many)
    page = expansion.expand_page(now)
    assert page.claimed == len(many)
    assert Counter(event.schedule_id for event in page.events) == {made.id: 3 for made in many}
    assert claim(store, now, lease_seconds=600)[1] == []


def test_expansion_reads_nothing_of_what_is_sent_and_leaves_it_where_it_is(
    settings: Settings, now: datetime
) -> None:
    body, headers = (
        RequestBody(BodyKind.TEXT, b"x" * MAX_BODY_BYTES),
        (("Authorization", "Bearer of a secret"),),
    )
    signing = Signing("whsec_c2VjcmV0", now)
    with closing(Store(replace(settings, secrets_key=Fernet.generate_key().decode()))) as store:
        store.prepare()
        made = replace(schedule(now, body=body, headers=headers), signing=signing)
        store.schedules.insert(made)
        token, (claimed,) = claim(store, now, lease_seconds=600)
        assert isinstance(claimed, Schedule)
        action = http_action(claimed.action)
        assert (action.body, action.headers, claimed.signing) == (None, (), None)
        store.cursors.release(["s1"], token)
        assert Expansion(store, timeframe_seconds=5).expand_page(now).events
        sent = stored(store)
        assert (sent.action, sent.signing) == (made.action, signing)
    # Nor does it matter to it that the key is lost: the events say so, and are redriven when it is found.
    with closing(Store(replace(settings, secrets_key=Fernet.generate_key().decode()))) as keyless:
        assert Expansion(keyless, timeframe_seconds=60).expand_page(now).events


def test_a_schedule_finishes_when_its_last_occurrence_has_passed(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    store.schedules.insert(schedule(now, rrule="FREQ=SECONDLY;COUNT=5"))
    expansion.expand_page(now)
    assert expansion.finish_ended(now + 4 * SECOND) == 0
    assert stored(store).state is ScheduleState.ACTIVE
    assert expansion.finish_ended(now + 5 * SECOND) == 1
    assert stored(store).state is ScheduleState.FINISHED


def test_two_beats_do_not_take_the_same_schedule(store: Store, now: datetime) -> None:
    store.schedules.insert(schedule(now))
    assert len(claim(store, now, lease_seconds=600)[1]) == 1
    assert len(claim(store, now, lease_seconds=600)[1]) == 0


def test_the_claim_of_a_beat_that_died_runs_out(store: Store, expansion: Expansion, now: datetime) -> None:
    store.schedules.insert(schedule(now))
    claim(store, now, lease_seconds=-1)
    assert expansion.expand_page(now).claimed == 1


def test_a_schedule_that_somebody_bent_is_set_aside_with_its_reason_and_the_others_go_on(
    store: Store, expansion: Expansion, now: datetime, capsys: pytest.CaptureFixture[str]
) -> None:
    for schedule_id in ("bent", "torn", "s1"):
        store.schedules.insert(schedule(now, schedule_id))
    documents = store.mongo.collection("schedules")
    documents.update_one({"_id": "bent"}, {"$set": {"pinned": "NOT A RULE"}})
    documents.update_one({"_id": "torn"}, {"$unset": {"action": ""}})
    page = expansion.expand_page(now)
    assert page.claimed == 3
    assert {each.schedule_id for each in page.events} == {"s1"}
    bent = stored(store, "bent")
    assert bent.state is ScheduleState.ERROR
    assert bent.reason
    torn = documents.find_one({"_id": "torn"})
    assert torn is not None
    assert (torn["state"], "action" in torn["reason"]) == ("error", True)
    assert "".join(capsys.readouterr()).count("schedule.set_aside") == 2
    assert expansion.expand_page(now).claimed == 0


def test_an_edit_begins_after_its_cut_and_withdraws_the_old_future(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    before = schedule(now, rrule="DTSTART:20260302T120000Z\nRRULE:FREQ=SECONDLY;INTERVAL=10")
    store.schedules.insert(before)
    expansion.expand_page(now)
    cut = now + 15 * SECOND
    after = before.revise(cut)
    assert store.schedules.revise(after, version=1)
    expansion.expand_page(cut)
    assert times(store) == [now + 10 * SECOND] + [now + (20 + 10 * i) * SECOND for i in range(6)]
    assert all(moment > cut for moment in times(store, State.CANCELLED))
    assert {row["revision"] for row in listed(store)[1:]} == {2}
    assert not stored(store).cut_pending


def test_an_edit_waits_for_an_old_occurrence_in_flight_and_begins_after_it(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    before = schedule(now, rrule="FREQ=SECONDLY;INTERVAL=10")
    store.schedules.insert(before)
    expansion.expand_page(now)
    first = event(now + SECOND)
    token, _ = store.claims.claim([first.id], until=now + SECOND, now=now, lease_seconds=600, worker="w1")
    assert store.schedules.revise(before.revise(now), version=1)
    assert expansion.expand_page(now).events == ()
    record = OutcomeRecord(first.id, token, State.COMPLETED, "", None, {"number": 1}, now)
    store.outcomes.record([record])
    assert expansion.expand_page(now).events[0].run_time == now + 11 * SECOND


def test_a_beat_that_was_overtaken_by_an_edit_neither_advances_nor_leaves_events(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    before = schedule(now)
    store.schedules.insert(before)
    token, claimed = claim(store, now, lease_seconds=600)
    assert store.schedules.revise(before.revise(now, state=ScheduleState.PAUSED), version=1)
    expansion._fill(claimed, token, now, now + 60 * SECOND)  # the beat wakes up with what it had claimed
    assert times(store) == []
    assert stored(store).state is ScheduleState.PAUSED


def test_what_the_old_rule_owes_is_made_before_an_edit_when_beats_are_away(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    made = schedule(now, rrule="FREQ=SECONDLY;INTERVAL=10")
    store.schedules.insert(made)
    for _ in range(2):
        assert expansion.expand_up_to(made, now + 31 * SECOND).left_to_beats is None
        assert times(store) == [now + (1 + 10 * i) * SECOND for i in range(4)]


def test_while_many_wait_each_is_given_what_it_needs_next_before_any_is_filled_far_ahead(
    store: Store, now: datetime
) -> None:
    expansion = Expansion(store, timeframe_seconds=600)
    many = [schedule(now, f"s{number}") for number in range(2 * OCCURRENCES_A_PAGE // 100)]
    store.schedules.insert_many(many)
    expansion.expand_page(now)  # by which it learns how dense they are
    made = Counter(times_of_all(store))
    pages = 0
    while len(made) < len(many):
        made.update(event.schedule_id for event in expansion.expand_page(now).events)
        pages += 1
    assert pages <= len(many) * NEXT_NEEDED.total_seconds() / OCCURRENCES_A_PAGE * 4
    furthest = store.mongo.collection("events").find_one(
        {"run_time": {"$gt": now + OCCURRENCES_A_SCHEDULE * SECOND}}
    )
    assert furthest is None


def test_what_is_due_next_is_made_beside_what_is_owed_of_the_past(store: Store, now: datetime) -> None:
    expansion = Expansion(store, timeframe_seconds=600)
    long_ago = now - timedelta(hours=2)
    owing = [schedule(long_ago, f"owing{number}") for number in range(2 * SCHEDULES_A_PAGE)]
    near = schedule(now, "near", rrule=f"DTSTART:{now + 20 * SECOND:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=HOURLY")
    store.schedules.insert_many([*owing, near])
    page = expansion.expand_page(now)
    made = {event.schedule_id for event in page.events}
    assert "near" in made
    assert len(made) > 1, "what is owed has its share"
    assert page.full


def test_schedules_made_in_bulk_are_filled_as_far_as_is_asked_for(store: Store, now: datetime) -> None:
    expansion = Expansion(store, timeframe_seconds=600)
    many = [schedule(now, f"s{number}") for number in range(100)]
    store.schedules.insert_many(many)
    page = expansion.expand_these(many, now, now + 6 * SECOND)
    assert Counter(event.schedule_id for event in page.events) == {made.id: 5 for made in many}
    assert expansion.expand_page(now).events[0].run_time == now + 6 * SECOND


def test_an_event_carries_the_origin_of_its_schedule_s_url(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    store.schedules.insert(schedule(now, url="HTTPS://Example.com/hook?a=1"))
    expansion.expand_page(now)
    assert set(store.mongo.collection("events").distinct("origin")) == {"https://example.com:443"}
    assert {due.origin for due in store.outbox.due(now + 60 * SECOND, limit=10)} == {
        "https://example.com:443"
    }


def times_of_all(store: Store) -> list[str]:
    return [row["schedule_id"] for row in store.mongo.collection("events").find({}, {"schedule_id": 1})]


def test_a_schedule_that_changed_since_it_was_written_is_left_to_beats(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    names = ("alone", "edited", "paused", "claimed", "expanded", "deleted")
    written = {name: schedule(now, name) for name in names}
    store.schedules.insert_many(list(written.values()))
    edited = replace(written["edited"], version=2, name="another")
    assert store.schedules.update(edited, version=1)
    paused = written["paused"].revise(now, state=ScheduleState.PAUSED)
    assert store.schedules.revise(paused, version=1)
    store.cursors.claim_written([written["claimed"]], lease_seconds=600)
    assert expansion.expand_these([written["expanded"]], now, now + 2 * SECOND).events
    store.schedules.delete("deleted", now)
    page = expansion.expand_these(list(written.values()), now, now + 6 * SECOND)
    assert (page.claimed, {event.schedule_id for event in page.events}) == (1, {"alone"})
    # Nothing stays claimed but what another has.
    held = store.mongo.collection("schedules").distinct("_id", {"owner": {"$exists": True}})
    assert held == ["claimed"]


def test_events_of_a_schedule_that_was_deleted_meanwhile_are_cancelled_beside_one_that_cannot_be_read(
    store: Store, now: datetime
) -> None:
    store.schedules.insert_many([schedule(now, name) for name in ("a", "b", "c")])
    made = [event(now + MINUTE, name) for name in ("a", "b", "c")]
    store.events.insert(made, now, "made")
    documents = store.mongo.collection("schedules")
    documents.update_one({"_id": "a"}, {"$set": {"name": 5}})
    documents.update_one({"_id": "b"}, {"$set": {"state": "deleted"}})
    cancel_late_inserts(store, ["a", "b", "c"], now)
    states = [event_document(store, each.id)["state"] for each in made]
    assert states == ["ready_queue", "cancelled", "ready_queue"]


def test_a_schedule_whose_missed_occurrences_mongodb_rejects_is_set_aside_and_no_page_follows_for_it(
    store: Store, expansion: Expansion, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: dict[str, Any] = {"catch_up": CatchUp.NONE, "late_after_seconds": 60}
    store.schedules.insert(schedule(now - timedelta(hours=1), rrule="FREQ=HOURLY;INTERVAL=5", **late))

    def rejects(*_: Any) -> None:
        raise OperationFailure("of the test", 121)

    monkeypatch.setattr(store.missed, "settle", rejects)
    later = now + timedelta(hours=9)
    page = expansion.expand_page(later)
    assert (page.claimed, page.events, page.full) == (1, (), False)
    assert stored(store).state is ScheduleState.ERROR
    assert "what it missed cannot be stored" in (stored(store).reason or "")


@pytest.mark.parametrize("first", ["cancel_past_cut", "look_past_cut"])
def test_a_claim_in_the_middle_of_a_cut_is_seen_or_finds_nothing(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    made = event(now + SECOND)
    store.events.insert([made], now, "made")
    one = schedule(now, "s1", rrule="DTSTART:20260101T000000Z\nRRULE:FREQ=SECONDLY")
    edited = replace(one.revise(now), version=2)
    right: Any = getattr(store.cancellations, first)
    claimed: list[str] = []

    def then_claimed(*given: Any) -> Any:
        found = right(*given)
        _, ids = store.claims.claim([made.id], until=now + SECOND, now=now, lease_seconds=9, worker="w1")
        claimed.extend(each.id for each in ids)
        return found

    monkeypatch.setattr(store.cancellations, first, then_claimed)
    begins = begin_revision(store, edited, now)
    assert (begins, claimed) == (edited.revised_at, [])
    [row] = store.mongo.collection("events").find({}, {"state": 1})
    assert row["state"] == State.CANCELLED
