"""Which claimed events run, wait or are left out, by what is known of earlier ones, and who is woken."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pymongo.errors import AutoReconnect
from structlog.testing import capture_logs

from scheduler_app.domain.event import Event
from scheduler_app.domain.lateness import CatchUp
from scheduler_app.domain.message import Message
from scheduler_app.domain.schedule import Schedule, next_look
from scheduler_app.domain.states import Kind, State
from scheduler_app.store.events.overlaps import UnfinishedEvent
from scheduler_app.worker import policies
from scheduler_app.worker.batch import ClaimedBatch, StoreRetry
from scheduler_app.worker.capacity import WorkerStopping
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.policies import (
    STOP,
    ExpiryStep,
    Followers,
    HeldBack,
    LateEvents,
    Overlap,
    OverlapCheck,
)
from scheduler_app.worker.recorder import AttemptResult, Delayed, EndedUnsent, Expired
from tests.builders import event, schedule
from tests.builders import message as message_event

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LEASE = Lease("token", [], asked_at=0, timeout_seconds=10)


def at(second: int, **changes: Any) -> Event:
    return event(NOON + second * SECOND, **changes)


def unfinished(of: Event, state: State = State.RUNNING) -> UnfinishedEvent:
    return UnfinishedEvent(of.id, of.run_time, state)


class Known:
    """What the store says of a schedule's events."""

    def __init__(self, *earlier: UnfinishedEvent) -> None:
        self.earlier = list(earlier)
        self.newer: dict[str, str] = {}
        self.asked: list[tuple[Any, ...]] = []

    def unfinished(
        self, schedule_id: str, until: datetime, *, scope: str, limit: int
    ) -> list[UnfinishedEvent]:
        self.asked.append((schedule_id, until, scope, limit))
        return self.earlier

    def supersede(self, newest: Event, now: datetime) -> None:
        self.asked.append((newest, now))
        self.newer = dict.fromkeys(self.newer, newest.id)

    def superseded(self, ids: list[str]) -> dict[str, str]:
        self.asked.append((ids,))
        return self.newer

    def held(self, asked: Schedule, *events: Event) -> HeldBack:
        store = cast(Any, SimpleNamespace(overlaps=self))
        overlap = Overlap(store, now=lambda: NOON + 100 * SECOND, worker="w1")
        return overlap.held_back([(each, asked) for each in events], LEASE)


def message(of: object) -> str:
    if isinstance(of, Delayed):
        return of.postponement.message
    assert isinstance(of, EndedUnsent)
    return of.ending.message


def test_of_events_that_skip_the_first_unfinished_one_runs_and_the_others_name_it() -> None:
    first, second, third = at(1), at(2), at(3)
    known = Known(unfinished(first, State.READY_QUEUE), unfinished(second, State.WORKER_QUEUE))
    asked = schedule(NOON, run_overlap="skip", overlap_scope="attempt")
    held = known.held(asked, at(0), first, second, third)
    assert set(held) == {second.id, third.id}
    assert all(f"the earlier event {first.id} is ready_queue" in message(each) for each in held.values())
    assert known.asked == [("s1", third.run_time, "attempt", 1)]
    assert Known().held(asked, first) == {}


def test_events_that_queue_wait_for_the_one_in_front_and_those_without_a_place_are_left_out() -> None:
    first, second, third, late, waited = (at(number) for number in range(1, 6))
    waited = waited._replace(postponed_from=NOON)
    known = Known(*(unfinished(each) for each in (first, second, third)))
    asked = schedule(NOON, run_overlap="queue", queue_limit=2)
    held = known.held(asked, first, second, third, late, waited)
    waits = {each.event_id: each.postponement for each in held.values() if isinstance(each, Delayed)}
    assert [(each.waits_for, each.message[:16]) for each in waits.values()] == [
        (first.id, "Waits in place 1"),
        (second.id, "Waits in place 2"),
        (third.id, "Waits in place 3"),
    ]
    assert list(waits) == [second.id, third.id, waited.id]
    now = NOON + 100 * SECOND
    assert waits[second.id].due_at == now + next_look(98 * SECOND, 1)
    assert waits[waited.id].due_at == now + next_look(100 * SECOND, 3)
    assert (waits[second.id].postponed_from, waits[waited.id].postponed_from) == (second.due_at, NOON)
    assert f"queue with room for 2, and the earlier event {first.id}" in message(held[late.id])
    assert known.asked == [("s1", waited.run_time, "event", 3)]


def test_retries_and_backfills_are_not_judged_by_what_is_earlier() -> None:
    first, second = at(1), at(2)
    known, asked = Known(unfinished(at(0))), schedule(NOON, run_overlap="skip")
    retry = first._replace(attempt=1)
    assert set(known.held(asked, first._replace(kind=Kind.BACKFILL), retry, second)) == {second.id}
    known.asked.clear()
    assert known.held(asked, retry) == {}
    assert known.asked == []


def test_the_newest_event_of_a_batch_ends_the_earlier_ones_before_it_is_asked_which_ended() -> None:
    # By its id alone the first one would come after the second.
    first, second = at(1, revision=2), at(2)
    known = Known()
    known.newer = {first.id: ""}
    asked = schedule(NOON, run_overlap="cancel_earlier")
    held = known.held(asked, first, second._replace(attempt=1))
    assert set(held) == {first.id}
    assert f"{second.id} has begun" in message(held[first.id])
    assert known.asked[0][1] == NOON + 100 * SECOND
    assert known.asked[1] == ([first.id, second.id],)


def test_where_the_store_does_not_answer_no_overlap_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any, **__: Any) -> Any:
        raise AutoReconnect("of the test")

    monkeypatch.setattr(Known, "unfinished", away)
    with pytest.raises(AutoReconnect):
        Known().held(schedule(NOON, run_overlap="skip"), at(1))


def test_a_schedule_that_cannot_be_judged_has_its_events_set_aside_and_no_other_one_s() -> None:
    class Broken(Known):
        def unfinished(self, schedule_id: str, *given: Any, **limits: Any) -> list[UnfinishedEvent]:
            if schedule_id == "s1":
                raise ValueError("a defect of ours")
            return super().unfinished(schedule_id, *given, **limits)

    asked = schedule(NOON, run_overlap="skip", on_failure="told")
    other = replace(asked, id="s2")
    store = cast(Any, SimpleNamespace(overlaps=Broken(unfinished(at(0, schedule_id="s2")))))
    overlap = Overlap(store, now=lambda: NOON + 9 * SECOND, worker="w1")
    broken, judged = at(1), at(1, schedule_id="s2")
    held = overlap.held_back([(broken, asked), (judged, other)], LEASE)
    assert list(held) == [broken.id, judged.id]
    aside, skipped = held.values()
    assert isinstance(aside, AttemptResult)
    assert (aside.record.state, aside.record.ended_at, aside.lease) == (
        State.ERROR,
        NOON + 9 * SECOND,
        LEASE,
    )
    assert aside.record.attempt["worker"] == "w1"
    assert aside.record.message.endswith("run_overlap cannot be judged: ValueError: a defect of ours")
    assert aside.record.owed is not None
    assert isinstance(skipped, EndedUnsent)


class Noted:
    def __init__(self) -> None:
        self.pairs: list[tuple[Event, Schedule]] = []

    def note(self, pairs: list[tuple[Event, Schedule]]) -> None:
        self.pairs += pairs


def test_only_events_of_schedules_that_ask_for_it_are_judged_and_none_that_an_edit_withdrew() -> None:
    noted, judged = Noted(), list[Any]()

    def held_back(*given: Any) -> HeldBack:
        judged.append(given)
        return {}

    overlap = SimpleNamespace(held_back=held_back)
    check = OverlapCheck(cast(Any, overlap), cast(Any, noted), StoreRetry())
    asks, allows = schedule(NOON, "s1", run_overlap="skip"), schedule(NOON, "s2")
    edited = replace(asks, id="s3").revise(NOON)
    events = [at(1), at(2, schedule_id="s2"), at(3, schedule_id="s3"), at(4, schedule_id="gone")]
    batch = ClaimedBatch(events, LEASE)
    assert check.held_back(batch, {"s2": allows}) == {}
    assert judged == []
    assert check.held_back(batch, {each.id: each for each in (asks, allows, edited)}) == {}
    assert judged == [([(events[0], asks)], LEASE)]
    assert noted.pairs == [(events[0], asks)]


def test_late_events_end_their_followers_are_noted_and_the_others_go_on() -> None:
    noted, results = Noted(), list[Any]()
    step = ExpiryStep(
        *(LateEvents(cast(Any, None)), cast(Any, noted)),
        *(cast(Any, SimpleNamespace(put=results.extend)), StoreRetry()),
    )
    asks = schedule(NOON - timedelta(days=1), catch_up=CatchUp.NONE, late_after_seconds=60)
    plain = schedule(NOON - timedelta(days=1), "s2")
    edited = replace(asks, id="s3").revise(NOON - SECOND)
    late, fresh, other, withdrawn = at(0), at(60), at(0, schedule_id="s2"), at(0, schedule_id="s3")
    batch = ClaimedBatch([late, fresh, other, withdrawn], LEASE)
    schedules = {each.id: each for each in (asks, plain, edited)}
    now = NOON + 90 * SECOND
    left = step.without_late(batch, schedules, now)
    assert left == ClaimedBatch([fresh, other, withdrawn], LEASE)
    assert [(type(each), each.event_id, each.lease) for each in results] == [(Expired, late.id, LEASE)]
    assert noted.pairs == [(late, asks)]
    assert step.without_late(left, {"s2": plain}, now) is left


def test_the_next_occurrence_counts_from_the_instant_at_which_it_is_due() -> None:
    asked = schedule(
        NOON - timedelta(days=1),
        rrule="FREQ=MINUTELY;BYSECOND=0",
        catch_up=CatchUp.LATEST,
        late_after_seconds=30,
    )
    late, judge = at(0), LateEvents(cast(Any, None))
    assert set(judge.expired([(late, asked)], NOON + 60 * SECOND)) == {late.id}
    assert judge.expired([(late, asked)], NOON + 59.999 * SECOND) == {}
    # In whatever order they come, the newest of a batch is the one that is sent.
    newest = at(60)
    now = NOON + 110 * SECOND
    assert set(judge.expired([(newest, asked), (late, asked)], now)) == {late.id}
    assert set(judge.expired([(late, asked), (newest, asked)], now)) == {late.id}


def test_a_run_by_hand_and_what_was_redriven_have_no_jitter() -> None:
    asked = schedule(NOON - timedelta(days=1), expire_after_seconds=60, jitter_seconds=50)
    by_hand, redriven = at(0, kind=Kind.MANUAL), at(0, due_since=NOON + 5 * SECOND)
    assert policies.judged_again_at(by_hand, asked, NOON) == NOON + 60 * SECOND
    assert policies.judged_again_at(redriven, asked, NOON) == NOON + 65 * SECOND


def test_a_message_is_late_since_it_was_due() -> None:
    made = message_event(NOON, expire_after_seconds=60)
    assert isinstance(made.message, Message)
    assert policies.judged_again_at(made, made.message, NOON) == NOON + 60 * SECOND


@pytest.fixture
def followers() -> Callable[..., tuple[Followers, list[Any], list[list[str]]]]:
    """Made with what each look for the next event finds; with what was asked, and what was delivered."""

    def made(*answers: Any) -> tuple[Followers, list[Any], list[list[str]]]:
        asked, delivered, left = list[Any](), list[list[str]](), list(answers)

        def wake_next(schedule_id: str, now: datetime, *, scope: str = "") -> Any:
            asked.append((schedule_id, now, scope))
            found = left.pop(0)
            if isinstance(found, Exception):
                raise found
            return found

        store = SimpleNamespace(overlaps=SimpleNamespace(wake_next=wake_next))
        made = Followers(cast(Any, store), now=lambda: NOON)

        def deliver(ids: list[str]) -> int:
            delivered.append(ids)
            return len(ids)

        made.deliver_by(deliver)
        return made, asked, delivered

    return made


def put(waker: Followers, *schedule_ids: str) -> None:
    asked = schedule(NOON, run_overlap="queue", overlap_scope="attempt")
    for schedule_id in schedule_ids:
        waker.note([(at(0, schedule_id=schedule_id), replace(asked, id=schedule_id))])
        waker.settled([at(0, schedule_id=schedule_id).id, "unknown"])


def test_the_next_event_of_each_schedule_is_woken_and_delivered_until_the_end(
    followers: Callable[..., tuple[Followers, list[Any], list[list[str]]]],
) -> None:
    waker, asked, delivered = followers(None, AutoReconnect("of the test"), at(5, schedule_id="s3"))
    put(waker, "s1", "s2", "s3")
    waker.stop()
    put(waker, "behind")
    with capture_logs() as lines:
        waker.run()
    assert asked == [(each, NOON, "attempt") for each in ("s1", "s2", "s3")]
    assert delivered == [[at(5, schedule_id="s3").id]]
    assert [line["event"] for line in lines] == ["followers.delayed"]


def test_a_defect_of_ours_keeps_no_other_schedule_s_event_waiting(
    followers: Callable[..., tuple[Followers, list[Any], list[list[str]]]],
) -> None:
    waker, _, delivered = followers(ValueError("a defect of ours"), at(5, schedule_id="s2"))
    put(waker, "s1", "s2")
    waker.stop()
    with capture_logs() as lines:
        waker.run()
    assert delivered == [[at(5, schedule_id="s2").id]]
    assert [(line["event"], line["schedule_id"]) for line in lines] == [("followers.failed", "s1")]


def test_a_worker_that_ends_wakes_nobody_any_more(
    followers: Callable[..., tuple[Followers, list[Any], list[list[str]]]],
) -> None:
    waker, asked, _ = followers(WorkerStopping(), None)
    put(waker, "s1", "s2")
    waker._ended.put((STOP, "event"))
    waker.run()
    assert len(asked) == 1


def test_of_more_claimed_events_than_are_remembered_the_last_ones_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policies, "MAX_HELD", 2)
    waker = Followers(cast(Any, SimpleNamespace(overlaps=None)), now=lambda: NOON)
    asked = schedule(NOON, run_overlap="queue")
    waker.note([(at(number), asked) for number in range(3)])
    waker.note([(at(9), schedule(NOON, run_overlap="skip"))])
    assert list(waker._held) == [at(1).id, at(2).id]
