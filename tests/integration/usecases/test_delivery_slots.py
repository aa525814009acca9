"""The limit `delivery_slots` of a tenant: how many of its attempts are in flight, in all workers together."""

import secrets
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import timedelta
from typing import Any

import pytest
import redis

from scheduler_app.broker.redis.flow_control import RedisLimiter
from scheduler_app.clock import clock
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.ids import TENANT, whole_id
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.tenant import DeliverySlots, Tenant, TenantLimits, TenantState
from scheduler_app.store import Store
from scheduler_app.usecases.deeds.api_keys import TenantService
from scheduler_app.worker import Pipeline
from tests.acceptance.journal import Journal
from tests.builders import event, schedule
from tests.executors import executors
from tests.integration.actions.receiver import Seen
from tests.processes import PATIENCE_SECONDS, wait_until

SECOND = timedelta(seconds=1)
MILLISECOND = timedelta(milliseconds=1)


class Receiver:
    """Answers when it may, and knows how many requests were open at once, by path."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = threading.Lock()
        self._may_answer = threading.Event()
        self.open: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.keys: dict[str, list[str]] = {}

    def url(self, path: str) -> str:
        def behave(seen: Seen, connection: socket.socket) -> bool:
            with self._lock:
                self.open[path] += 1
                self.most[path] = max(self.most[path], self.open[path])
                self.keys.setdefault(path, []).append(seen.headers["idempotency-key"])
            self._may_answer.wait(PATIENCE_SECONDS)
            with self._lock:
                self.open[path] -= 1
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            return True

        return self._journal.script(path, behave)

    def answer(self) -> None:
        self._may_answer.set()


class Workers:
    """Two workers' pipelines over one Redis."""

    def __init__(self, store: Store, redis_url: str) -> None:
        self.store = store
        self.prefix = f"test-{secrets.token_hex(6)}:"
        self.client = redis.Redis.from_url(redis_url)
        self.client.set(f"{self.prefix}flow:began", "1")
        self.limiter = RedisLimiter(self.client, self.prefix)
        self.both = [
            Pipeline(
                store,
                executors(),
                now=clock.now,
                worker=f"w{number}",
                horizon_seconds=5,
                max_events=1_000,
                limiter=RedisLimiter(redis.Redis.from_url(redis_url), self.prefix),
            )
            for number in range(2)
        ]
        for each in self.both:
            each.start()

    def end(self) -> None:
        for each in self.both:
            each.stop_starting()
            each.interrupt()
            each.stop()
        self.client.close()

    def events(self, tenant: str, count: int, url: str | None, **fields: Any) -> list[str]:
        """Events of a tenant's schedule that are due since a moment."""
        own_id, now = whole_id(tenant, "s"), clock.now()
        self.store.schedules.insert(schedule(now - 10 * SECOND, own_id, url=url or NOT_GIVEN, **fields))
        first = now.replace(microsecond=0) - SECOND
        made = [event(first + number * MILLISECOND, own_id) for number in range(count)]
        self.store.events.insert(made, now, "made")
        return [each.id for each in made]

    def deliver(self, ids: Sequence[str]) -> None:
        """Half of them by each."""
        for place, each in enumerate(self.both):
            some = list(ids[place::2])
            assert each.delivery.deliver(some) == len(some)

    def state(self, ids: Sequence[str]) -> Counter[str]:
        rows = self.store.mongo.collection("events").find({"_id": {"$in": list(ids)}}, {"state": 1})
        return Counter(row["state"] for row in rows)

    def in_flight(self, tenant: str = "acme") -> int:
        return self.limiter.look(DeliverySlots(tenant, 1)).in_flight


@pytest.fixture
def ground(store: Store, redis_url: str) -> Iterator[tuple[Workers, Receiver]]:
    with ExitStack() as stack:
        receiver = Receiver(stack.enter_context(closing(Journal())))
        workers = Workers(store, redis_url)
        stack.callback(workers.end)
        stack.callback(receiver.answer)
        yield workers, receiver


def limit(store: Store, slots: int | None, tenant: str = "acme") -> None:
    assert store.tenants.put(Tenant(tenant, clock.now(), limits=TenantLimits(delivery_slots=slots)))


@pytest.mark.parametrize("tenant", ["acme", TENANT])
def test_no_more_are_in_flight_than_its_tenant_has_slots_and_others_do_not_wait(
    ground: tuple[Workers, Receiver], store: Store, tenant: str
) -> None:
    workers, receiver = ground
    limit(store, 3, tenant)
    theirs = workers.events(tenant, 8, receiver.url("/a"))
    others = workers.events("globex", 8, receiver.url("/b"))
    workers.deliver(theirs)
    workers.deliver(others)
    wait_until(lambda: receiver.open["/b"] == 8, "all of the other tenant's")
    wait_until(lambda: receiver.open["/a"] == 3, "as many as there are slots")
    wait_until(lambda: workers.in_flight(tenant) == 3, "the slots to be taken")
    receiver.answer()
    wait_until(lambda: workers.state([*theirs, *others]) == {"completed": 16}, "all of them")
    assert receiver.most == {"/a": 3, "/b": 8}
    assert sorted(receiver.keys["/a"]) == sorted(theirs), "each once"
    wait_until(lambda: workers.in_flight(tenant) == 0, "the slots to be free")
    wait_until(lambda: not any(each.flow_control._held_by for each in workers.both), "nothing to be held")


def test_an_attempt_to_a_limited_destination_needs_room_there_and_a_slot(
    ground: tuple[Workers, Receiver], store: Store
) -> None:
    workers, receiver = ground
    limit(store, 2)
    now = clock.now()
    own_id = whole_id("acme", "d")
    made = Destination(id=own_id, url=receiver.url("/a"), created_at=now, updated_at=now, concurrency=4)
    assert store.destinations.insert(made)
    ids = workers.events("acme", 6, None, destination="d")
    workers.deliver(ids)
    wait_until(lambda: receiver.open["/a"] == 2, "as many as there are slots")
    wait_until(lambda: workers.limiter.look(made).in_flight == 4, "the room at the destination to be taken")
    receiver.answer()
    wait_until(lambda: workers.state(ids) == {"completed": 6}, "all of them")
    assert receiver.most == {"/a": 2}
    wait_until(lambda: workers.in_flight() == 0, "the slots to be free")
    wait_until(lambda: workers.limiter.look(made).in_flight == 0, "the destination to be free")


def test_what_a_worker_cannot_keep_is_put_off_and_says_why(
    ground: tuple[Workers, Receiver], store: Store
) -> None:
    workers, receiver = ground
    limit(store, 1)
    ids = workers.events("acme", 30, receiver.url("/a"))
    workers.deliver(ids)
    wait_until(lambda: workers.state(ids)["ready_queue"] >= 1, "some to be put off")
    row = store.mongo.collection("events").find_one({"_id": {"$in": ids}, "state": "ready_queue"})
    assert row is not None
    assert "the tenant acme waits for a request in flight to end" in row["status"][-1]["message"]
    assert not row.get("attempts")


def test_the_slots_of_a_worker_that_died_are_free_when_their_time_is_over(
    ground: tuple[Workers, Receiver], store: Store
) -> None:
    workers, receiver = ground
    limit(store, 1)
    # As it was left by a worker that told of it once and never again.
    slots = f"{workers.prefix}flow:slots/acme:slots"
    seconds, _ = workers.client.time()
    workers.client.zadd(slots, {"acme:lost-1-20260101T000000Z": seconds + 2})
    ids = workers.events("acme", 1, receiver.url("/a"))
    receiver.answer()
    workers.deliver([])
    assert workers.both[0].delivery.deliver(ids) == 1
    wait_until(lambda: receiver.most["/a"] == 1, "the slot to be free")


def test_without_such_a_limit_redis_is_asked_nothing_and_mongodb_no_more(
    ground: tuple[Workers, Receiver], store: Store
) -> None:
    workers, receiver = ground
    limit(store, None)
    receiver.answer()
    ids = workers.events("acme", 10, receiver.url("/a"))
    workers.deliver(ids)
    wait_until(lambda: workers.state(ids) == {"completed": 10}, "all of them")
    assert workers.client.keys(f"{workers.prefix}*") == [f"{workers.prefix}flow:began".encode()]


def test_slots_are_read_in_the_look_at_kill_switches(store: Store) -> None:
    limit(store, 5)
    limit(store, 6, TENANT)
    known = store.kill_switches.everybodys()
    assert (known.delivery_slots, bool(known)) == ({"acme": 5, TENANT: 6}, False)
    assert store.tenants.put(
        Tenant("acme", clock.now(), TenantState.SUSPENDED, limits=TenantLimits(delivery_slots=5))
    )
    assert [each.tenant for each in store.kill_switches.everybodys().targets] == ["acme"]
    for bent in ("many", [1], True, 1.5, {"a": 1}, -1):
        change = {"$set": {"limits.delivery_slots": bent}}
        store.mongo.collection("tenants").update_one({"_id": "acme"}, change)
        assert store.kill_switches.everybodys().delivery_slots == {TENANT: 6}


def test_where_nothing_counts_the_limit_is_refused(store: Store) -> None:
    service = TenantService(store, 30, counts_slots=False)
    with pytest.raises(InvalidField, match="must set FLOW_CONTROL_URL"):
        service.put(Tenant("acme", clock.now(), limits=TenantLimits(delivery_slots=1)))
    service.put(Tenant("acme", clock.now(), limits=TenantLimits(requests_per_second=1)))
