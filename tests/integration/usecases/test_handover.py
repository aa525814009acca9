"""What a worker does between claiming events and starting them, also where MongoDB does not answer then."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from pymongo.errors import AutoReconnect
from structlog.testing import capture_logs

from scheduler_app.clock import clock, monotonic
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.states import SUSPECT_AFTER
from scheduler_app.store import Store
from scheduler_app.worker import Pipeline, batch, claim
from scheduler_app.worker.attempt import Attempt
from scheduler_app.worker.attempt_maker import TimeoutLeases
from scheduler_app.worker.batch import StoreRetry, is_withdrawn
from scheduler_app.worker.capacity import WorkerStopping
from scheduler_app.worker.lease import FIRST_TIMEOUT_SECONDS, MARGIN_SECONDS, Lease, Leases
from tests.acceptance.journal import Journal
from tests.builders import event, schedule
from tests.executors import executors
from tests.integration.actions.receiver import hangs
from tests.processes import PATIENCE_SECONDS, wait_until

SECOND = timedelta(seconds=1)


def away(*_: Any, **__: Any) -> Any:
    raise AutoReconnect("connection closed")


class Bench:
    """A worker's pipeline over the store of the test."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.pipeline = Pipeline(
            *(store, executors()), now=clock.now, worker="w1", horizon_seconds=5, max_events=100
        )
        self.pipeline.start()
        # By itself it looks when it has events.
        self.pipeline.withholding.blackouts.look()
        self.pipeline.withholding.kill_switches.look()

    def schedule(self, url: str, schedule_id: str = "s1", **fields: Any) -> Schedule:
        made = schedule(clock.now() - 60 * SECOND, schedule_id, url=url, **fields)
        self.store.schedules.insert(made)
        return made

    def event(self, second: int = 0, schedule_id: str = "s1", **changes: Any) -> str:
        made = event(clock.now() - second * SECOND, schedule_id)
        self.store.events.insert([made], clock.now(), "made")
        if changes:
            self.store.mongo.collection("events").update_one({"_id": made.id}, {"$set": changes})
        return made.id

    def deliver(self, ids: Sequence[str]) -> None:
        self.pipeline.delivery.deliver(ids)
        assert self.pipeline.wait_until_empty(PATIENCE_SECONDS)

    def row(self, event_id: str) -> dict[str, Any]:
        found = self.store.mongo.collection("events").find_one({"_id": event_id})
        assert found is not None
        return found


@pytest.fixture
def bench(store: Store) -> Iterator[Bench]:
    made = Bench(store)
    yield made
    made.pipeline.stop_starting()
    made.pipeline.interrupt()
    made.pipeline.stop()


@pytest.fixture
def journal() -> Iterator[Journal]:
    with closing(Journal()) as made:
        yield made


def test_a_suspect_that_cannot_be_marked_is_given_back_and_the_others_are_sent(
    bench: Bench, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.schedule(journal.url("/a"))
    suspect, other = bench.event(lost_leases=SUSPECT_AFTER), bench.event(1, lost_leases=SUSPECT_AFTER - 1)
    monkeypatch.setattr(bench.store.claims, "isolate", away)
    with capture_logs() as lines:
        bench.deliver([suspect, other])
    assert [call.key for call in journal.calls["/a"]] == [other]
    assert bench.row(suspect)["state"] == "ready_queue"
    assert bench.row(suspect)["status"][-1]["message"] == "Given back by w1"
    assert [line["event_id"] for line in lines if line["event"] == "deliver.not_isolated"] == [suspect]
    monkeypatch.setattr(bench.store.claims, "isolate", lambda *_: False)
    bench.deliver([suspect])
    assert bench.row(suspect)["state"] == "ready_queue", "its claim was lost"


def test_events_whose_tokens_cannot_be_stored_are_given_back_and_those_that_need_none_are_sent(
    bench: Bench, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.schedule(journal.url("/awaited"), "awaited", completion="callback")
    bench.schedule(journal.url("/plain"), "plain")
    awaited, plain = bench.event(schedule_id="awaited"), bench.event(schedule_id="plain")
    with monkeypatch.context() as patch:
        patch.setattr(bench.store.completions, "expect", away)
        bench.deliver([awaited, plain])
    assert (bench.row(awaited)["state"], bench.row(plain)["state"]) == ("ready_queue", "completed")
    assert (len(journal.calls["/awaited"]), len(journal.calls["/plain"])) == (0, 1)
    bench.deliver([awaited])
    assert bench.row(awaited)["state"] == "running"
    assert len(bench.row(awaited)["completion"]["tokens"]) == 1


def test_what_claimed_events_need_is_asked_for_until_mongodb_answers(
    bench: Bench, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "BACKOFF_SECONDS", (0.0, 0.001))
    bench.schedule(journal.url("/a"))
    ids = [bench.event(number) for number in range(3)]
    for_delivery, asked = bench.store.schedules.for_delivery, []

    def failing(*given: Any) -> Any:
        asked.append(given)
        return for_delivery(*given) if len(asked) > 4 else away()

    monkeypatch.setattr(bench.store.schedules, "for_delivery", failing)
    bench.deliver(ids)
    assert {bench.row(each)["state"] for each in ids} == {"completed"}


def test_a_worker_that_ends_while_mongodb_does_not_answer_gives_back_what_it_has_claimed(
    bench: Bench, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.schedule(journal.url("/a"))
    ids = [bench.event(number) for number in range(3)]
    asked: list[Any] = []

    def asked_in_vain(*given: Any) -> Any:
        asked.append(given)
        away()

    monkeypatch.setattr(bench.store.schedules, "for_delivery", asked_in_vain)
    bench.pipeline.delivery.deliver(ids)
    wait_until(lambda: bool(asked), "the question")
    bench.pipeline.stop_starting()
    assert bench.pipeline.wait_until_empty(PATIENCE_SECONDS)
    assert {bench.row(each)["state"] for each in ids} == {"ready_queue"}
    assert journal.calls["/a"] == []


def test_a_question_is_asked_after_growing_pauses_and_given_up_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch, "BACKOFF_SECONDS", (0.0, 0.0))
    asking, tries = StoreRetry(), list[int]()

    def fails_five_times() -> str:
        tries.append(1)
        return "answer" if len(tries) > 5 else str(away())

    with capture_logs() as lines:
        assert asking.until_answered(fails_five_times) == "answer"
    assert len(tries) == 6
    assert len(lines) == 5
    asking.stop()
    assert asking.until_answered(lambda: "at once") == "at once"
    with pytest.raises(WorkerStopping):
        asking.until_answered(away)


def test_a_long_timeout_has_a_lease_that_is_renewed_as_long_as_it_lasts(
    bench: Bench, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.schedule(journal.script("/a", hangs), timeout_seconds=120)
    bench.schedule(journal.url("/b"), "quick", timeout_seconds=FIRST_TIMEOUT_SECONDS)
    made, quick = bench.event(), bench.event(schedule_id="quick")
    renew, renewals = bench.store.claims.renew, []

    def failing_once(ids: Sequence[str], *rest: Any) -> Any:
        renewals.append(list(ids))
        return renew(ids, *rest) if len(renewals) > 1 else away()

    monkeypatch.setattr(bench.store.claims, "renew", failing_once)
    monkeypatch.setattr(claim, "FIRST_TIMEOUT_SECONDS", FIRST_TIMEOUT_SECONDS)
    before = bench.store.mongo.server_time()
    with capture_logs() as lines:
        bench.pipeline.delivery.deliver([made, quick])
        # Without the longer lease its request does not start; the thread of the leases asks for it again.
        wait_until(lambda: bool(journal.calls["/a"]), "the request")
    assert renewals == [[made]] * 2
    assert [line["event"] for line in lines if line["event"].startswith("lease.")] == ["lease.not_renewed"]
    until = bench.row(made)["lease_until"]
    assert until - before > timedelta(seconds=120)
    assert until - bench.store.mongo.server_time() <= timedelta(seconds=120 + MARGIN_SECONDS)

    def held() -> list[float]:
        return [lease.timeout_seconds for lease in bench.pipeline.leases._leases if lease.open()]

    wait_until(lambda: held() == [120.0], "the record of the quick one")


def test_a_pass_over_the_leases_ends_where_mongodb_does_not_answer_and_tells_what_was_lost(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [event(now - number * SECOND) for number in range(4)]
    store.events.insert(made, now, "made")
    leases, ids = Leases(store), [each.id for each in made]
    for part in (ids[:2], ids[2:]):
        token, _ = store.claims.claim(part, until=now, now=now, lease_seconds=1, worker="w1")
        leases.add(Lease(token, part, asked_at=monotonic() - 60, timeout_seconds=10))
    asked: list[Any] = []

    def asked_in_vain(*given: Any) -> Any:
        asked.append(given)
        away()

    with monkeypatch.context() as patch:
        patch.setattr(store.claims, "renew", asked_in_vain)
        assert leases.renew_due(monotonic()) == (0, 0)
    assert len(asked) == 1, "the others would wait as long"
    store.mongo.collection("events").update_one({"_id": ids[0]}, {"$set": {"owner": "another"}})
    before, at = store.mongo.server_time(), monotonic()
    with capture_logs() as lines:
        assert leases.renew_due(at) == (2, 1)
    assert [line["event_ids"] for line in lines if line["event"] == "lease.lost"] == [(ids[0],)]
    assert leases.renew_due(at) == (0, 0), "all are renewed"
    for each in made[1:]:
        found = store.mongo.collection("events").find_one({"_id": each.id})
        assert found is not None
        assert found["lease_until"] - before > timedelta(seconds=20)


def test_a_request_of_a_longer_timeout_need_not_wait_for_the_next_pass_over_the_leases(
    store: Store, now: datetime
) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    token, _ = store.claims.claim([made.id], until=now, now=now, lease_seconds=1, worker="w1")
    at = monotonic()
    first = Lease(token, [made.id], asked_at=at, timeout_seconds=10)
    slow = replace(schedule(now), timeout_seconds=300)
    [(longer, _)] = TimeoutLeases(Leases(store)).by_class([Attempt(made, slow, token, "w1")], first)
    assert longer.has_room_for(300, at)


def test_a_lease_of_which_nothing_is_held_asks_mongodb_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store.claims, "renew", away)
    lease = Lease("token", ["a"], asked_at=monotonic(), timeout_seconds=10)
    lease.settle(["a"])
    assert Leases(store).renew(lease) == ()


def test_an_event_of_a_revision_before_the_first_one_that_counts_is_withdrawn(now: datetime) -> None:
    made = schedule(now)
    edited: Callable[..., Any] = made.revise
    assert not is_withdrawn(event(now + SECOND), made)
    revised = edited(now)
    assert is_withdrawn(event(now + SECOND, revision=1), revised)
    assert not is_withdrawn(event(now - SECOND, revision=1), revised)
