"""Schedules that are paused because their last events all failed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Barrier, Thread

import pytest
from pymongo.errors import AutoReconnect

from scheduler_app.assembly import Assembly, assemble
from scheduler_app.broker.app import make_app
from scheduler_app.clock import clock, monotonic
from scheduler_app.config import Settings
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.schedule import PAUSED_BY_FAILURES, Pause, Schedule, ScheduleState
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.telemetry import metrics
from scheduler_app.telemetry.logs import UnexpectedErrors
from scheduler_app.usecases.duties.pauses import FailurePausing
from scheduler_app.worker import Pipeline
from scheduler_app.worker.reports import JUDGED_AT_ONCE, MAX_FAILED_SCHEDULES, FailedSchedules
from tests.acceptance.journal import Journal
from tests.builders import event, schedule
from tests.executors import executors
from tests.integration.actions.receiver import says
from tests.processes import PATIENCE_SECONDS, wait_until

SECOND = timedelta(seconds=1)
YEARLY = "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY"

Told = list[tuple[str, int, str]]


@pytest.fixture
def made(settings: Settings, store: Store) -> Iterator[Assembly]:
    found = assemble(settings, make_app(settings))
    yield found
    found.store.close()


@pytest.fixture
def told() -> Told:
    return []


@pytest.fixture
def pausing(made: Assembly, told: Told) -> FailurePausing:
    def tell(paused: Schedule, reason: str, now: datetime) -> None:
        told.append((paused.id, paused.revision, reason))

    return FailurePausing(made.store, made.manager, tell)


@pytest.fixture
def ended(store: Store, now: datetime) -> Callable[[Sequence[str]], None]:
    """Makes events of s1, a second apart from a minute ago on, that ended in these states."""

    def end(states: Sequence[str], first: datetime = now - 60 * SECOND) -> None:
        made = [event(first + number * SECOND) for number in range(len(states))]
        store.events.insert(made, now, "made")
        for each, state in zip(made, states, strict=True):
            until = max(now, each.due_at)
            token, _ = store.claims.claim([each.id], until=until, now=now, lease_seconds=600, worker="w")
            entry = {"number": 1, "started_at": now}
            due = now + SECOND if state == "retrying" else None
            assert not store.outcomes.record(
                [OutcomeRecord(each.id, token, State(state), "said", due, entry, now)]
            )

    return end


def failing(store: Store, now: datetime, most: int | None = 3, **changes: object) -> Schedule:
    made = schedule(now - 120 * SECOND, rrule=YEARLY, pause_after_failures=most)
    made = replace(made, **changes)  # type: ignore[arg-type]
    store.schedules.insert(made)
    return made


def stored(store: Store) -> Schedule:
    found = store.schedules.get("s1")
    assert isinstance(found, Schedule)
    return found


@pytest.mark.parametrize(
    ("states", "paused"),
    [
        (["error"] * 3, True),
        (["completed", "error", "error", "error"], True),
        (["error"] * 2, False),
        (["error", "error", "completed", "error", "error"], False),
        (["error", "error", "error", "completed"], False),
        # An unfinished one says nothing yet, and does not make the row end.
        (["error", "retrying", "error", "retrying", "error", "retrying"], True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_so_many_failures_in_a_row_pause_it(
    store: Store,
    now: datetime,
    pausing: FailurePausing,
    ended: Callable[[Sequence[str]], None],
    told: Told,
    states: list[str],
    paused: bool,
) -> None:
    before = failing(store, now)
    ended(states)
    assert pausing.judge("s1", now) is paused
    after = stored(store)
    assert after.state is (ScheduleState.PAUSED if paused else ScheduleState.ACTIVE)
    if paused:
        assert after.pause is not None
        assert after.pause.reason == PAUSED_BY_FAILURES
        assert "3 events in a row" in str(after.pause.note)
        assert after.version == before.version
        assert told == [("s1", after.revision, PAUSED_BY_FAILURES)]


def test_an_event_that_somebody_bent_is_not_counted_and_hides_no_failure(
    store: Store, pausing: FailurePausing, ended: Callable[[Sequence[str]], None], now: datetime
) -> None:
    failing(store, now)
    ended(["error"] * 4)
    events = store.mongo.collection("events")
    newest = events.find_one({}, sort=[("run_time", -1)])
    assert newest is not None
    events.update_one({"_id": newest["_id"]}, {"$set": {"state": ["error"]}})
    assert pausing.judge("s1", now)


def test_several_workers_that_judge_at_once_pause_it_once_and_tell_once(
    store: Store, now: datetime, pausing: FailurePausing, ended: Callable[[Sequence[str]], None], told: Told
) -> None:
    failing(store, now)
    ended(["error"] * 3)
    barrier = Barrier(5)

    def judge() -> None:
        barrier.wait(PATIENCE_SECONDS)
        pausing.judge("s1", now)

    workers = [Thread(target=judge) for _ in range(5)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert len(told) == 1
    assert stored(store).revision == 2


def test_on_failure_is_told_once_by_a_message(
    store: Store, now: datetime, made: Assembly, ended: Callable[..., None]
) -> None:
    destination = Destination(id=WholeId("ops"), url="http://127.0.0.1:9/", created_at=now, updated_at=now)
    assert store.destinations.insert(destination)
    failing(store, now, on_failure="ops")
    ended(["error"] * 3)
    assert made.failure_pausing.judge("s1", now)
    made.failure_pausing.tell(stored(store), PAUSED_BY_FAILURES, now)
    messages = list(store.mongo.collection("events").find({"kind": "message"}))
    assert [each["action"]["destination"] for each in messages] == ["ops"]


def test_a_resume_starts_the_count_over(
    store: Store,
    now: datetime,
    made: Assembly,
    pausing: FailurePausing,
    ended: Callable[..., None],
) -> None:
    failing(store, now)
    ended(["error"] * 3)
    assert pausing.judge("s1", now)
    made.manager.resume("s1", now)
    ended(["error"] * 2, now + SECOND)
    later = now + 10 * SECOND
    assert not pausing.judge("s1", later)
    ended(["error"], now + 5 * SECOND)
    assert pausing.judge("s1", later)


def test_a_pause_that_ends_by_itself_starts_the_count_over_too(store: Store, now: datetime) -> None:
    paused = failing(store, now).revise(now, state=ScheduleState.PAUSED, pause=Pause(until=now + SECOND))
    resumed = paused.resumed_by_itself()
    assert resumed.failures_since == resumed.revised_at
    assert paused.failures_since is None


def test_a_schedule_without_it_or_that_rests_already_is_left_alone(
    store: Store,
    now: datetime,
    made: Assembly,
    pausing: FailurePausing,
    ended: Callable[..., None],
    told: Told,
) -> None:
    failing(store, now, None)
    ended(["error"] * 3)
    assert not pausing.judge("s1", now)
    assert not pausing.judge("nobody", now)
    made.manager.pause("s1", now, note="by hand")
    assert not pausing.judge("s1", now)
    assert stored(store).pause == Pause(note="by hand")
    assert told == []


def test_an_edit_between_judgement_and_pause_wins(store: Store, now: datetime, made: Assembly) -> None:
    judged = failing(store, now)
    edited = replace(judged, version=2, pause_after_failures=50)
    assert store.schedules.update(edited, version=1)
    assert made.manager.pause_for_failures(judged, now, note="x") is None
    assert stored(store).state is ScheduleState.ACTIVE


def test_a_worker_pauses_what_it_has_seen_fail(store: Store, made: Assembly, settings: Settings) -> None:
    journal = Journal()
    url = journal.script("/a", says("400 Bad Request"))
    now = clock.now()
    store.schedules.insert(schedule(now - 60 * SECOND, rrule=YEARLY, url=url, pause_after_failures=3))
    store.schedules.insert(schedule(now - 60 * SECOND, "s2", rrule=YEARLY, url=url))
    events = [event(now - number * SECOND, name) for number in range(3) for name in ("s1", "s2")]
    store.events.insert(events, now, "made")
    pipeline = Pipeline(
        store,
        executors(origin_concurrency=200),
        now=clock.now,
        worker="w1",
        horizon_seconds=5,
        max_events=1_000,
        judge_failures=made.failure_pausing.judge,
    )
    pipeline.start()
    try:
        assert pipeline.delivery.deliver([each.id for each in events]) == 6
        wait_until(lambda: stored(store).state is ScheduleState.PAUSED, "the worker to pause it")
        other = store.schedules.get("s2")
        assert isinstance(other, Schedule)
        assert other.state is ScheduleState.ACTIVE
    finally:
        pipeline.stop_starting()
        pipeline.interrupt()
        pipeline.stop()
        journal.close()


def test_what_waits_to_be_judged_is_bounded_and_kept_through_a_fault(now: datetime) -> None:
    seen: list[str] = []

    def judge(schedule_id: str, now: datetime) -> bool:
        if not seen:
            seen.append("fault")
            raise AutoReconnect("MongoDB is away")
        seen.append(schedule_id)
        return True

    def record(schedule_id: str, state: State, pauses: bool = True) -> OutcomeRecord:
        made = event(now, schedule_id)
        return OutcomeRecord(made.id, "t", state, "", None, {}, now, made, pauses_on_failure=pauses)

    unexpected = UnexpectedErrors(
        metrics.worker_failures, "reports.failed", "A step failed", monotonic=monotonic
    )
    failures = FailedSchedules(judge, unexpected)
    failures.note([record("fine", State.COMPLETED), record("plain", State.ERROR, pauses=False)])
    assert len(failures) == 0
    failures.note([record(f"s{number}", State.ERROR) for number in range(MAX_FAILED_SCHEDULES + 5)])
    assert len(failures) == MAX_FAILED_SCHEDULES
    with pytest.raises(AutoReconnect, match="away"):
        failures.judge(now)
    assert len(failures) == MAX_FAILED_SCHEDULES
    failures.judge(now)
    assert len(failures) == MAX_FAILED_SCHEDULES - JUDGED_AT_ONCE
