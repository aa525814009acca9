"""What went wrong when the Go original was run, as a test each that it does not happen here.

Its faults are numbered as they were seen; the figures in the docstrings are the original's, on two shared
cores. What kills processes carries the mark `chaos`.
"""

import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
from flask.testing import FlaskClient
from redis import Redis as RedisClient

from scheduler_app.actions.http import Guard
from scheduler_app.actions.http.sender import Sender
from scheduler_app.broker.app import make_app
from scheduler_app.broker.publisher import CeleryPublisher
from scheduler_app.config import Settings
from scheduler_app.domain.schedule import Schedule
from scheduler_app.embedded import Mongod, free_port
from scheduler_app.store import Store
from scheduler_app.usecases.duties.dispatch import Dispatch
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.usecases.duties.housekeeping import Recovery
from tests import broker_queue
from tests.acceptance.journal import Journal
from tests.acceptance.shared_stack import SharedStack
from tests.acceptance.stack import ONCE, Stack
from tests.acceptance.test_crashes import when_told
from tests.acceptance.test_delivery import gaps, in_seconds, instant
from tests.builders import event, schedule
from tests.integration.actions.receiver import hangs, says
from tests.integration.actions.sending import send_one
from tests.integration.api.conftest import start, stop
from tests.integration.store.taking import take
from tests.processes import wait_until

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


@pytest.fixture
def settings(mongo_uri: str, database_name: str, redis_url: str) -> Settings:
    return Settings(mongo_uri=mongo_uri, mongo_database=database_name, broker_url=redis_url)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    made = Store(settings)
    made.prepare()
    yield made
    made.close()


def filled(expansion: Expansion, now: datetime) -> int:
    """A tick's expansion, all its pages; the events it made."""
    made = 0
    while True:
        page = expansion.expand_page(now)
        made += len(page.events)
        if not page.full:
            return made


# -- 1: DTSTART is "now" at each tick --------------------------------------------------------------------


def test_1_the_first_example_of_its_manual_fires(stack: Stack, journal: Journal) -> None:
    """`FREQ=DAILY;INTERVAL=1` without DTSTART never fired."""
    stack.create(journal.url("/daily"), rrule="FREQ=DAILY;INTERVAL=1")
    wait_until(lambda: len(journal.calls["/daily"]) == 1, "the first occurrence, a second from now")


def test_1_ticks_do_not_multiply_the_occurrences_of_a_rule(store: Store) -> None:
    """`FREQ=MINUTELY` made 10, 20, 30, 40 events in four ticks where 10 were right."""
    store.schedules.insert(schedule(NOON, rrule="FREQ=MINUTELY"))
    expansion = Expansion(store, timeframe_seconds=600)
    made = [filled(expansion, NOON + tick * SECOND) for tick in range(4)]
    assert made == [10, 0, 0, 0]


# -- 2 and 3: a tick costs what exists -------------------------------------------------------------------

MANY = 3_000


def test_2_and_3_schedules_that_share_a_second_are_expanded_in_passing_and_then_cost_nothing(
    store: Store,
) -> None:
    """Each tick read and expanded every schedule from its DTSTART: 2.4 ms for an hourly one, 8.7 s with
    100,000. 10,000 that shared a second took 49 s, then 77 s at each later tick: quadratic."""
    old = "DTSTART:20200101T000200Z\nRRULE:FREQ=HOURLY"
    store.schedules.insert_many([schedule(NOON, f"s{number}", rrule=old) for number in range(MANY)])
    expansion = Expansion(store, timeframe_seconds=600)
    assert filled(expansion, NOON) == MANY
    assert expansion.expand_page(NOON + SECOND).claimed == 0, "nothing is read that has nothing to do"


# -- 4: what is due between two ticks is lost -------------------------------------------------------------


def test_4_what_is_due_before_the_next_tick_is_sent(stack: SharedStack, journal: Journal) -> None:
    """Ten one-offs 10 s ahead, ticks 30 s apart: 0 calls."""
    with stack.stopped("beat"):  # there is no tick
        made = stack.create_many(10, journal.url("/soon"), delay_seconds=3)
        for one in made:
            assert stack.finished(one)[0]["state"] == "completed"
    assert len(journal.calls["/soon"]) == 10


@pytest.mark.chaos
def test_4_what_falls_due_while_everything_is_down_is_sent_afterwards(
    make_stack: Callable[..., Stack], journal: Journal
) -> None:
    """What was due while it was down was lost."""
    stack = make_stack()
    stack.api()
    beat, worker = stack.beat(), stack.worker()
    made = stack.create(journal.url("/down"), rrule="FREQ=SECONDLY;COUNT=12")
    wait_until(lambda: len(journal.calls["/down"]) >= 2, "two calls")
    stack.kill(beat)
    stack.kill(worker)
    down_until = time.monotonic() + 5
    wait_until(lambda: time.monotonic() > down_until, "some occurrences to pass")
    stack.beat("second")
    stack.worker("second")
    stack.finished(made, 12)
    assert len({call.run_time for call in journal.calls["/down"]}) == 12


# -- 5: a worker pops without acknowledging ---------------------------------------------------------------


@pytest.mark.chaos
@pytest.mark.timeout(180)
def test_5_a_worker_killed_in_a_callback_strands_nothing(
    make_stack: Callable[..., Stack], journal: Journal
) -> None:
    """kill -9 stranded what was in flight for ever, in 6 of 6 runs."""
    stack = make_stack()
    stack.api()
    stack.beat()
    victim = stack.worker("victim")
    told = threading.Event()
    made = stack.create(journal.script("/held", when_told(told), says()), rrule=ONCE)
    wait_until(lambda: bool(journal.calls["/held"]), "the request to be in flight")
    stack.kill(victim)
    told.set()
    stack.worker("heir")
    assert stack.finished(made)[0]["state"] == "completed"


@pytest.mark.chaos
def test_5_a_callback_in_flight_at_sigterm_is_recorded(
    make_stack: Callable[..., Stack], journal: Journal
) -> None:
    """The callback was made and its result never written, in 5 of 5 runs."""
    stack = make_stack()
    stack.api()
    worker = stack.worker()
    told = threading.Event()
    made = stack.create(journal.script("/held", when_told(told)), rrule=ONCE)
    wait_until(lambda: bool(journal.calls["/held"]), "the request to be in flight")
    worker.send_signal(signal.SIGTERM)
    wait_until(lambda: "Warm shutdown" in stack.logs(), "the signal to be heard")
    told.set()
    assert worker.wait() == 0
    (done,) = stack.events(made)
    assert (done["state"], done["attempts"][0]["status_code"]) == ("completed", 200)


# -- 6: moves in two steps --------------------------------------------------------------------------------


def test_6_a_dispatcher_that_dies_between_its_two_steps_loses_nothing(
    store: Store, settings: Settings
) -> None:
    """kill -9 between popping an event and pushing it lost it, in 3 of 3 runs (1 of 5 at the other place)."""
    app = make_app(settings)
    publisher = CeleryPublisher(app)
    now = datetime.now(UTC).replace(microsecond=0)
    store.events.insert([event(now)], now, "made")
    _, taken = take(store.outbox, now, limit=10, lease_seconds=0.2)
    assert len(taken) == 1, "and here it died: taken, and no message sent"
    dispatch, recovery = Dispatch(store, publisher, horizon_seconds=5), Recovery(store)
    assert dispatch.dispatch_page(now).dispatched == 0
    wait_until(lambda: recovery.recover_dispatches(now).messages == 1, "its lease to be over")
    assert dispatch.dispatch_page(now).dispatched == 1
    assert publisher.queue_length() == 1


@pytest.mark.chaos
@pytest.mark.timeout(180)
def test_6_a_redis_that_forgets_its_queue_loses_no_event(
    make_stack: Callable[..., Stack], journal: Journal
) -> None:
    """A restart of Redis without persistence lost the queue."""
    stack = make_stack()
    stack.api()
    stack.beat()
    made = stack.create(journal.url("/forgotten"), rrule=ONCE)
    with RedisClient.from_url(stack.environment["BROKER_URL"]) as broker:
        wait_until(lambda: broker_queue.waiting(broker) > 0, "the message")
        broker.flushdb()
    stack.worker()
    assert stack.finished(made)[0]["state"] == "completed"


# -- 7: any answer is success -----------------------------------------------------------------------------


def test_7_a_500_is_a_failure_and_its_retries_wait(stack: Stack, journal: Journal) -> None:
    """A 500 was archived as `completed`. Where it retried, it did so within 2–7 ms."""
    url = journal.script("/broken", says("500 Internal Server Error"))
    made = stack.create(url, rrule=ONCE, max_retries=2, retry_backoff_seconds=0.5)
    (done,) = stack.finished(made)
    assert (done["state"], done["attempt"]) == ("error", 3)
    assert [attempt["status_code"] for attempt in done["attempts"]] == [500, 500, 500]
    first, second = gaps(done)
    # Each is drawn from the upper half of its delay; a busy machine only adds to it.
    assert first >= 0.25
    assert second >= 0.5


def test_7_receivers_that_hang_stop_nobody(stack: Stack, journal: Journal) -> None:
    """There was no timeout: five hanging receivers stopped all five workers."""
    url, ever = journal.script("/hangs", hangs), {"rrule": ONCE, "max_retries": 0}
    hanging = stack.create_many(20, url, timeout_seconds=300, **ever)
    wait_until(lambda: len(journal.calls["/hangs"]) == 20, "all of them to hang")
    (other,) = stack.finished(stack.create(journal.url("/others"), rrule=ONCE))
    assert other["state"] == "completed"
    (given_up,) = stack.finished(stack.create(url, timeout_seconds=1, **ever))
    assert given_up["attempts"][0]["error"] == "timed out after 1 s"
    assert [stack.events(one) for one in hanging] == [[]] * 20


# -- 8: PUT validates nothing -----------------------------------------------------------------------------


@pytest.mark.parametrize("field", [{"rrule": "NOT A RULE"}, {"callback_url": 123}])
def test_8_an_edit_that_makes_no_sense_is_refused_and_changes_nothing(
    stack: Stack, journal: Journal, field: dict[str, Any]
) -> None:
    """Both were a 200, and the next GET a 500."""
    made = stack.create(journal.url("/kept"), run_at=in_seconds(3600))
    path = f"{stack.url}/api/schedules/{made}"
    before = requests.get(path).json()
    assert requests.put(path, json=field).status_code == 422
    after = requests.get(path)
    assert (after.status_code, after.json()) == (200, before)


def test_8_an_edit_takes_the_old_rules_events_away(stack: Stack, journal: Journal) -> None:
    """They fired beside the new ones."""
    made = stack.create(journal.url("/edited"), rrule="DTSTART:20260101T000000Z\nRRULE:FREQ=MINUTELY")
    wait_until(lambda: bool(stack.events(made, "pending")), "the old rule's events")
    edited = instant(stack.put(made, rrule="DTSTART:20260101T000030Z\nRRULE:FREQ=MINUTELY")["updated_at"])

    def to_come() -> set[float]:
        """In which seconds; one that was due before the edit may be under way."""
        times = (instant(one["run_time"]) for one in stack.events(made, "pending"))
        return {each % 60 for each in times if each > edited}

    wait_until(lambda: bool(to_come()), "the new rule's events")
    assert to_come() == {30}


@pytest.mark.parametrize("method", ["get", "put", "delete"])
def test_8_an_unknown_schedule_is_not_found(stack: Stack, method: str) -> None:
    """It was a 500."""
    given = {"name": "x"} if method == "put" else None
    answer = requests.request(method, f"{stack.url}/api/schedules/nobody", json=given)
    assert answer.status_code == 404


# -- 9: silence and panic ---------------------------------------------------------------------------------


@pytest.mark.chaos
def test_9_an_unreachable_mongodb_is_told_and_survived(make_stack: Callable[..., Stack]) -> None:
    """It was a nil-pointer panic. LOG_LEVEL, and the file's level, were ignored: nothing was logged."""
    nobody = f"mongodb://127.0.0.1:{free_port()}/?replicaSet=rs0"
    stack = make_stack(MONGO_URI=nobody, LOG_LEVEL="error")
    process = stack.api(has_mongodb=False)
    wait_until(lambda: '"mongodb.unreachable"' in stack.logs(), "the log to name it")
    assert process.poll() is None
    assert "Traceback" not in stack.logs()
    assert '"level": "info"' not in stack.logs()


def test_9_a_default_log_says_what_happens(stack: Stack) -> None:
    """Nothing was logged by default."""
    assert '"level": "info"' in stack.logs()


# -- 10: no guard anywhere --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def locked(mongod_server: Mongod, redis_url_of_module: str) -> Iterator[FlaskClient]:
    """An API with a key, in this process."""
    name = f"test_{secrets.token_hex(6)}"
    settings = Settings(mongo_uri=mongod_server.uri, mongo_database=name, broker_url=redis_url_of_module)
    app = start(replace(settings, api_keys=("k" * 24,)))
    app.extensions["scheduler"].store.prepare()
    yield app.test_client()
    stop(app)


@pytest.fixture(scope="module")
def redis_url_of_module(redis_server: Any) -> str:
    url: str = redis_server.url
    return url


def test_10_nobody_gets_in_without_a_key(locked: FlaskClient) -> None:
    """There was no authentication."""
    assert locked.get("/api/schedules").status_code == 401
    assert locked.get("/api/schedules", headers={"X-API-Key": "k" * 24}).status_code == 200


def test_10_a_callback_does_not_reach_the_inside(journal: Journal) -> None:
    """There was no guard against server-side request forgery."""
    sender = Sender(Guard(()))
    answer = send_one(sender, journal.url("/inside"))
    sender.close()
    assert answer.ours
    assert "a private address" in str(answer.error)
    assert journal.connections == 0


@pytest.mark.parametrize(
    "field",
    [
        {"callback_url": "ftp://example.com/"},
        {"method": "NOPE"},
        {"body": "x" * (256 * 1024 + 1)},
        {"name": "x" * 10_000},
        {"max_retries": 1_000_000},
        {"rrule": "FREQ=SECONDLY;COUNT=1000000000"},
    ],
)
def test_10_what_cannot_be_called_or_is_too_much_is_refused(stack: Stack, field: dict[str, Any]) -> None:
    """`ftp://` and the method NOPE were accepted, and there were no limits."""
    body = {"name": "x", "callback_url": "http://example.com/", "rrule": "FREQ=DAILY"} | field
    answer = requests.post(f"{stack.url}/api/schedules", json=body)
    assert answer.status_code == 422, answer.text


def test_10_zones_and_exceptions_of_a_rule_count(stack: Stack) -> None:
    """There were no zones, no EXDATE and no RDATE."""
    rule = "DTSTART:20261024T080000\nRRULE:FREQ=DAILY;COUNT=3\nEXDATE:20261025T080000\nRDATE:20261025T120000"
    asked = {"rrule": rule, "timezone": "Europe/Zurich", "after": "2026-10-20T00:00:00Z", "limit": 5}
    shown = stack.post("/schedules/preview", asked, status=200)["occurrences"]
    # The clock is set back in the night to the 25th.
    times = ["2026-10-24T06:00:00Z", "2026-10-25T11:00:00Z", "2026-10-26T07:00:00Z"]
    assert [one["run_time"] for one in shown] == times


def test_10_two_that_expand_at_once_double_nothing(store: Store) -> None:
    """There was no unique index: two PreQueuers doubled everything."""
    made: Schedule = schedule(NOON, rrule="FREQ=SECONDLY")
    store.schedules.insert(made)
    expansion = Expansion(store, timeframe_seconds=600)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: expansion.expand_up_to(made, NOON + MINUTE), range(8)))
    assert store.mongo.collection("events").count_documents({}) == 60


def test_10_the_history_has_an_index_and_an_end(store: Store) -> None:
    """There was no index for it, and no retention."""
    indexes = store.mongo.collection("events").index_information()
    keys = [[name for name, _ in index["key"]] for index in indexes.values()]
    assert ["schedule_id", "run_time", "_id"] in keys
    (ttl,) = [index for name, index in indexes.items() if name == "retention_v2"]
    assert ttl["key"][0][0] == "archived_at"
    assert ttl["expireAfterSeconds"] == 30 * 24 * 3600
