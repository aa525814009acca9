"""Jitter, from the rule to the event: only `due_at` has it."""

from datetime import timedelta

import pytest

from scheduler_app.domain.event import due
from scheduler_app.domain.ids import event_id
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.store import Store
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.usecases.duties.owed_expansion import OwedExpansion
from tests.builders import schedule
from tests.documents import event_document
from tests.integration.conftest import NOON

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def expansion(store: Store) -> Expansion:
    return Expansion(store, timeframe_seconds=600)


def test_events_fall_due_with_it_and_keep_the_times_of_their_occurrences(
    store: Store, expansion: Expansion
) -> None:
    store.schedules.insert(schedule(NOON, rrule="FREQ=MINUTELY;COUNT=3", jitter_seconds=600.0))
    made = expansion.expand_page(NOON).events
    run_times = [NOON + SECOND + i * MINUTE for i in range(3)]
    assert [each.run_time for each in made] == run_times
    for each in made:
        row = event_document(store, each.id)
        assert row["_id"] == event_id("s1", 1, each.run_time)
        assert (row["run_time"], row["due_at"]) == (each.run_time, due("s1", each.run_time, 600))
        assert row["run_time"] <= row["due_at"] < row["run_time"] + 600 * SECOND


def test_a_worker_claims_it_at_its_time_and_knows_both_instants(store: Store, expansion: Expansion) -> None:
    store.schedules.insert(schedule(NOON, rrule="FREQ=MINUTELY;COUNT=1", jitter_seconds=600.0))
    (made,) = expansion.expand_page(NOON).events

    def claimed(until_seconds: float) -> list[tuple[object, object]]:
        until = made.due_at + until_seconds * SECOND
        found = store.claims.claim([made.id], until=until, now=until, lease_seconds=600, worker="w")[1]
        return [(each.run_time, each.due_at) for each in found]

    assert claimed(-1) == []
    assert claimed(0) == [(made.run_time, made.due_at)]


def test_a_cut_judges_the_occurrence_and_not_when_it_falls_due(store: Store, expansion: Expansion) -> None:
    before = schedule(NOON, rrule="FREQ=MINUTELY", jitter_seconds=600.0)
    store.schedules.insert(before)
    expansion.expand_page(NOON)
    cut = NOON + 5 * MINUTE
    edited = ScheduleDraft(jitter_seconds=60.0).edit(before, cut)
    assert store.schedules.revise(edited, version=1)
    expansion.expand_these([edited], cut, cut + 10 * MINUTE)
    rows = store.mongo.collection("events").find({"state": "ready_queue"}).sort("run_time", 1)
    waiting = [(row["revision"], row["run_time"], row["due_at"]) for row in rows]
    old = [NOON + SECOND + i * MINUTE for i in range(5)]
    assert [(rev, run) for rev, run, _ in waiting[:5]] == [(1, each) for each in old]
    assert all(rev == 2 and due_at == due("s1", run, 60) for rev, run, due_at in waiting[5:])
    assert [run for _, run, _ in waiting[5:]][:2] == [NOON + 5 * MINUTE + SECOND, NOON + 6 * MINUTE + SECOND]


def test_what_an_edit_leaves_to_beats_keeps_the_jitter_that_it_had(
    store: Store, expansion: Expansion
) -> None:
    before = schedule(NOON, rrule="FREQ=SECONDLY", jitter_seconds=600.0)
    store.schedules.insert(before)
    cut = NOON + 300 * SECOND
    left = expansion.expand_up_to(before, cut).left_to_beats
    assert left is not None
    edited = ScheduleDraft(jitter_seconds=0.0).edit(before, cut)
    assert store.schedules.revise(edited, version=1, owed=left)
    OwedExpansion(store).expand_page(cut)
    rows = list(store.mongo.collection("events").find({"revision": 1}))
    assert len(rows) == 300
    assert all(row["due_at"] == due("s1", row["run_time"], 600) for row in rows)
