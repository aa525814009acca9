"""A worker's path without Celery: claim, read, void, send, record."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.callback import Guard, Sender, parse_networks
from scheduler_app.clock import clock
from scheduler_app.delivery import Courier, Delivery, Recorder
from scheduler_app.domain import event as events
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store import Store
from tests.acceptance.journal import Journal
from tests.builders import event, schedule
from tests.integration.callback.receiver import Seen, hangs, says
from tests.processes import wait_until

SECOND = timedelta(seconds=1)


@dataclass
class Bench:
    """A delivery with its threads, over the store of the test."""

    store: Store
    delivery: Delivery
    courier: Courier
    recorder: Recorder

    def schedule(self, url: str, schedule_id: str = "s1", **fields: Any) -> Schedule:
        made = schedule(clock.now() - 10 * SECOND, schedule_id, url=url, **fields)
        self.store.schedules.insert(made)
        return made

    def event(self, due: datetime, schedule_id: str = "s1", **changes: Any) -> str:
        made = event(due, schedule_id, **changes)
        self.store.events.insert([made], due, "made")
        return made.id

    def state(self, event_id: str) -> str:
        return str(self.document(event_id)["state"])

    def document(self, event_id: str) -> dict[str, Any]:
        found = self.store.events.get(event_id)
        assert found is not None
        return found


@pytest.fixture
def bench(store: Store) -> Iterator[Bench]:
    guard = Guard(parse_networks("127.0.0.0/8"))
    recorder = Recorder(store)
    courier = Courier(lambda: Sender(guard), recorder, clock.now)
    delivery = Delivery(store, courier, recorder, horizon_seconds=5, now=clock.now, worker="w1")
    recorder.start()
    courier.start()
    yield Bench(store, delivery, courier, recorder)
    courier.stop()
    recorder.stop()
    courier.join(10)
    recorder.join(10)


@pytest.fixture
def journal() -> Iterator[Journal]:
    made = Journal()
    yield made
    made.close()


def test_a_batch_is_delivered_and_recorded(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"))
    now = clock.now()
    ids = [bench.event(now - number * SECOND) for number in range(10)]
    assert bench.delivery.deliver(ids) == 10
    assert {bench.state(each) for each in ids} == {"completed"}
    assert {call.key for call in journal.calls["/a"]} == set(ids)


def test_a_doubled_message_doubles_no_call(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"))
    ids = [bench.event(clock.now())]
    threads = [threading.Thread(target=bench.delivery.deliver, args=(ids,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(journal.calls["/a"]) == 1


def test_a_message_for_an_event_that_is_not_due_within_the_horizon_is_dropped(
    bench: Bench, journal: Journal
) -> None:
    bench.schedule(journal.url("/a"))
    made = bench.event(clock.now() + 60 * SECOND)
    assert bench.delivery.deliver([made]) == 0
    assert bench.state(made) == "ready_queue"


def test_an_event_whose_message_comes_early_is_sent_at_its_time(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"))
    due = clock.now() + SECOND
    bench.delivery.deliver([bench.event(due)])
    assert journal.calls["/a"][0].at >= due.timestamp()


@pytest.mark.parametrize("withdraw", ["edit", "delete", "gone"])
def test_an_event_that_was_withdrawn_before_the_claim_is_not_sent(
    bench: Bench, journal: Journal, withdraw: str
) -> None:
    made = bench.schedule(journal.url("/a"))
    ids = [bench.event(clock.now())]
    if withdraw == "edit":
        bench.store.schedules.revise(made.revise(clock.now() - 5 * SECOND), version=1)
    elif withdraw == "delete":
        bench.store.schedules.delete("s1", clock.now())
    else:
        bench.store.mongo.collection("schedules").delete_one({"_id": "s1"})
    bench.delivery.deliver(ids)
    assert bench.state(ids[0]) == "cancelled"
    assert journal.calls["/a"] == []


@pytest.mark.parametrize("withdraw", ["edit", "delete"])
def test_an_event_that_is_withdrawn_between_an_early_claim_and_its_time_is_not_sent(
    bench: Bench, journal: Journal, withdraw: str
) -> None:
    made = bench.schedule(journal.url("/a"))
    due = clock.now() + 3 * SECOND
    early = bench.event(due)
    thread = threading.Thread(target=bench.delivery.deliver, args=([early],))
    thread.start()
    wait_until(lambda: bench.state(early) == "running", "the claim")
    if withdraw == "edit":
        assert bench.store.schedules.revise(made.revise(clock.now()), version=1)
    else:
        assert bench.store.schedules.delete("s1", clock.now())
    assert clock.now() < due
    thread.join(20)
    assert (bench.state(early), bench.document(early)["attempt"]) == ("cancelled", 0)
    assert journal.calls["/a"] == []


def test_what_is_owed_from_before_an_edit_is_still_sent(bench: Bench, journal: Journal) -> None:
    made = bench.schedule(journal.url("/a"))
    ids = [bench.event(clock.now() - 5 * SECOND)]
    bench.store.schedules.revise(made.revise(clock.now(), state=ScheduleState.PAUSED), version=1)
    bench.delivery.deliver(ids)
    assert bench.state(ids[0]) == "completed"


@pytest.mark.parametrize(
    ("edits", "ends"),
    [
        ([(-1, "active")], "completed"),
        ([(-1, "paused")], "cancelled"),
        ([(-1, "active"), (1, "paused")], "completed"),
        ([], "completed"),
        ([(-1, "finished")], "completed"),
    ],
)
def test_what_a_lost_worker_may_have_sent_is_sent_after_an_edit_and_not_after_a_pause(
    bench: Bench, journal: Journal, edits: list[tuple[int, str]], ends: str
) -> None:
    made = bench.schedule(journal.url("/a"))
    due = clock.now()
    begun = bench.event(due)
    bench.store.claims.claim([begun], until=due, now=due, lease_seconds=-1, worker="lost")
    bench.store.repairs.workers(due, delay_seconds=0, limit=10)
    for seconds, state in edits:
        made = made.revise(due + seconds * SECOND, state=ScheduleState(state))
        assert bench.store.schedules.revise(made, version=1)
    bench.delivery.deliver([begun])
    assert bench.state(begun) == ends


def test_a_manual_event_is_sent_whatever_the_revision(bench: Bench, journal: Journal) -> None:
    made = bench.schedule(journal.url("/a"))
    manual = events.manual("s1", 1, clock.now())
    bench.store.events.insert([manual], clock.now(), "triggered")
    bench.store.schedules.revise(made.revise(clock.now() - 5 * SECOND), version=1)
    bench.delivery.deliver([manual.id])
    assert bench.state(manual.id) == "completed"


def test_an_event_of_a_bent_schedule_is_set_aside_and_the_batch_goes_on(
    bench: Bench, journal: Journal
) -> None:
    bench.schedule(journal.url("/a"))
    bench.schedule(journal.url("/b"), "bent")
    bench.store.mongo.collection("schedules").update_one({"_id": "bent"}, {"$unset": {"action": ""}})
    good, bent = bench.event(clock.now()), bench.event(clock.now(), "bent")
    bench.delivery.deliver([bent, good])
    assert (bench.state(good), bench.state(bent)) == ("completed", "error")
    assert "cannot be read" in bench.document(bent)["status"][-1]["message"]


def test_an_outcome_that_our_code_cannot_judge_is_set_aside_and_the_batch_goes_on(
    bench: Bench, journal: Journal
) -> None:
    bench.schedule(journal.url("/a"))
    bench.schedule(journal.script("/b", says("500 No")), "poison")
    documents = bench.store.mongo.collection("schedules")
    documents.update_one({"_id": "poison"}, {"$set": {"retry.backoff_seconds": "soon"}})
    good, poison = bench.event(clock.now()), bench.event(clock.now(), "poison")
    bench.delivery.deliver([poison, good])
    assert (bench.state(good), bench.state(poison)) == ("completed", "error")


def test_a_slow_receiver_holds_up_no_other_outcome(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.script("/slow", hangs), "slow", timeout_seconds=3, max_retries=0)
    bench.schedule(journal.url("/quick"))
    slow, quick = bench.event(clock.now(), "slow"), bench.event(clock.now())
    thread = threading.Thread(target=bench.delivery.deliver, args=([slow, quick],))
    thread.start()
    wait_until(lambda: bench.state(quick) == "completed", "the quick one to be recorded")
    assert bench.state(slow) == "running"
    thread.join(20)
    assert bench.state(slow) == "error"


def test_a_worker_that_stops_gives_back_what_it_has_not_started(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"))
    made = bench.event(clock.now() + 3 * SECOND)
    thread = threading.Thread(target=bench.delivery.deliver, args=([made],))
    thread.start()
    wait_until(lambda: bench.state(made) == "running", "the claim")
    bench.courier.stop_starting()
    thread.join(20)
    assert (bench.state(made), bench.document(made)["attempt"]) == ("ready_queue", 0)
    assert journal.calls["/a"] == []


def test_a_worker_whose_grace_is_over_gives_back_what_is_in_flight(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.script("/a", hangs), timeout_seconds=30)
    made = bench.event(clock.now())
    thread = threading.Thread(target=bench.delivery.deliver, args=([made],))
    thread.start()
    wait_until(lambda: bool(journal.calls["/a"]), "the request")
    bench.courier.interrupt()
    thread.join(20)
    assert (bench.state(made), bench.document(made)["attempt"]) == ("ready_queue", 0)


def test_what_cannot_end_within_its_lease_is_given_back(
    bench: Bench, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.schedule(journal.url("/a"), timeout_seconds=9)
    made = bench.event(clock.now())
    monkeypatch.setattr("scheduler_app.delivery.delivery.BASE_LEASE_SECONDS", 8)
    bench.delivery.deliver([made])
    assert bench.state(made) == "ready_queue"
    assert journal.calls["/a"] == []


def test_a_long_timeout_gets_a_long_lease(bench: Bench, journal: Journal) -> None:
    told = threading.Event()

    def waits(seen: Seen, connection: Any) -> bool:
        told.wait(20)
        return says()(seen, connection)

    bench.schedule(journal.script("/a", waits), timeout_seconds=120)
    made = bench.event(clock.now())
    thread = threading.Thread(target=bench.delivery.deliver, args=([made],))
    thread.start()
    wait_until(lambda: bool(journal.calls["/a"]), "the request")
    lease = bench.document(made)["lease_until"] - bench.store.mongo.server_time()
    told.set()
    thread.join(20)
    assert lease > timedelta(seconds=100)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "gopher://127.0.0.1/", "http://user:pw@127.0.0.1/"])
def test_a_url_that_got_past_the_api_is_refused_in_the_history(bench: Bench, url: str) -> None:
    bench.schedule(url)
    made = bench.event(clock.now())
    bench.delivery.deliver([made])
    found = bench.document(made)
    assert (found["state"], found["attempt"]) == ("error", 1)
    assert "refused" in found["attempts"][0]["error"]
    assert "root:" not in str(found)


def test_a_redirect_is_not_followed_and_the_history_says_where_it_led(bench: Bench, journal: Journal) -> None:
    target = journal.url("/inside")
    bench.schedule(journal.script("/moved", says("302 Found", f"Location: {target}")))
    made = bench.event(clock.now())
    bench.delivery.deliver([made])
    found = bench.document(made)
    assert found["state"] == "error"
    assert f"redirect to {target} not followed" in found["attempts"][0]["error"]
    assert journal.calls["/inside"] == []
