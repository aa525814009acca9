"""A signal ends each process in order: nothing is torn, nothing waits, and a second one hurries."""

import http.client
import json
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from redis import Redis as RedisClient

from scheduler_app.config import Settings
from scheduler_app.embedded import free_port
from scheduler_app.store import Store
from scheduler_app.usecases.duties.expansion import SCHEDULES_A_PAGE
from tests import broker_queue
from tests.acceptance.journal import Journal
from tests.acceptance.stack import ONCE, Stack
from tests.acceptance.test_crashes import when_told
from tests.builders import schedule
from tests.fail_points import MongodWithFailPoints
from tests.integration.actions.receiver import hangs
from tests.processes import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(180)]


#: How long a process would wait for what the test holds back: longer than a test may take.
EVER_SECONDS = 600


def soon(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


# -- workers ---------------------------------------------------------------------------------------------


def test_a_worker_finishes_what_is_in_flight_and_gives_the_rest_back_in_time_for_another(
    make_stack: Callable[..., Stack], journal: Journal
) -> None:
    stack = make_stack(WORKER_SOFT_SHUTDOWN_SECONDS=str(EVER_SECONDS), DISPATCH_HORIZON_SECONDS="60")
    stack.api()
    stack.beat()
    first = stack.worker("first")
    told = threading.Event()
    # It must not time out before the others, which are due in 45 s, have come.
    in_flight = stack.create(journal.script("/held", when_told(told)), rrule=ONCE, timeout_seconds=300)
    wait_until(lambda: bool(journal.calls["/held"]), "the request to be in flight")
    with RedisClient.from_url(stack.environment["BROKER_URL"]) as broker:
        # A message is held until its events are claimed, and no longer.
        wait_until(lambda: broker.hlen(stack.key("unacked")) == 0, "its message to be done with")
        # Far enough ahead that the other one has them before they are due.
        waiting = stack.create_many(20, journal.url("/later"), delay_seconds=45)
        wait_until(lambda: broker.hlen(stack.key("unacked")) > 0, "the first worker to hold the others")
        assert broker_queue.waiting(broker) == 0
        first.send_signal(signal.SIGTERM)
        wait_until(lambda: broker_queue.waiting(broker) > 0, "them to be given back")
    stack.worker("second")
    for one in waiting:
        (event,) = stack.finished(one)
        assert (event["state"], event["attempt"]) == ("completed", 1)
        # Recovery, which would have dispatched them again 10 s after they were due, had nothing to do.
        assert [line["status"] for line in event["status"]].count("worker_queue") == 1
    assert len(journal.calls["/later"]) == 20
    assert first.poll() is None, "it waits for its request"
    told.set()
    assert first.wait() == 0
    (event,) = stack.finished(in_flight)
    assert (event["state"], event["attempt"], event["attempts"][0]["status_code"]) == ("completed", 1, 200)
    assert len(journal.calls["/held"]) == 1


def test_a_second_signal_makes_a_worker_give_back_what_is_in_flight_and_end_at_once(
    make_stack: Callable[..., Stack], journal: Journal
) -> None:
    stack = make_stack(WORKER_SOFT_SHUTDOWN_SECONDS=str(EVER_SECONDS))
    stack.api()
    worker = stack.worker()
    made = stack.create(journal.script("/hangs", hangs), run_at="2040-01-01T00:00:00Z", timeout_seconds=300)
    stack.post(f"/schedules/{made}/trigger", status=202)
    wait_until(lambda: bool(journal.calls["/hangs"]), "the request to be in flight")
    worker.send_signal(signal.SIGTERM)
    wait_until(lambda: "Warm shutdown" in stack.logs(), "the first signal to be heard")
    with pytest.raises(subprocess.TimeoutExpired):
        worker.wait(1)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0
    (event,) = [one for one in stack.events(made, "pending") if one["kind"] == "manual"]
    assert (event["state"], event["attempt"], event["attempts"]) == ("ready_queue", 0, [])
    assert event["status"][-1]["message"].startswith("Given back by worker@")


# -- beats -----------------------------------------------------------------------------------------------

PAGES = 3


@dataclass
class Expanding:
    """A beat in the middle of the first of several pages: its schedules are claimed, its events not made."""

    beat: subprocess.Popen[bytes]
    database: Any

    def events(self) -> int:
        count: int = self.database["events"].count_documents({})
        return count

    def claimed(self) -> int:
        count: int = self.database["schedules"].count_documents({"owner": {"$exists": True}})
        return count


@pytest.fixture
def slow_mongod() -> Iterator[MongodWithFailPoints]:
    with (
        tempfile.TemporaryDirectory(prefix="mongod-") as folder,
        MongodWithFailPoints(Path(folder)) as server,
    ):
        yield server


@pytest.fixture
def expanding(
    make_stack: Callable[..., Stack], slow_mongod: MongodWithFailPoints
) -> Iterator[Callable[[float], Expanding]]:
    stack = make_stack(MONGO_URI=slow_mongod.uri)
    name = stack.environment["MONGO_DATABASE"]
    store = Store(Settings(mongo_uri=slow_mongod.uri, mongo_database=name))
    client: MongoClient[dict[str, Any]] = MongoClient(slow_mongod.uri)

    def begin(seconds: float) -> Expanding:
        """`seconds`: how long MongoDB takes over the events of the first page."""
        beat = stack.beat()
        beat.send_signal(signal.SIGSTOP)
        now = datetime.now(UTC)
        for number in range(PAGES * SCHEDULES_A_PAGE):
            store.schedules.insert(schedule(now, f"s{number}", run_at=now + timedelta(minutes=3)))
        slow_mongod.delay("insert", f"{name}.events", seconds)
        beat.send_signal(signal.SIGCONT)
        begun = Expanding(beat, client[name])
        wait_until(lambda: begun.claimed() == SCHEDULES_A_PAGE, "the first page to be claimed")
        return begun

    yield begin
    store.close()
    client.close()


def test_a_beat_finishes_the_page_at_hand_and_begins_no_other(
    expanding: Callable[[float], Expanding],
) -> None:
    begun = expanding(1.0)
    assert begun.events() == 0
    begun.beat.send_signal(signal.SIGTERM)
    assert begun.beat.wait() == 0
    assert begun.events() == SCHEDULES_A_PAGE
    assert begun.claimed() == 0
    assert begun.database["nodes"].count_documents({"role": "beat"}) == 0


def test_a_beat_does_not_wait_for_a_mongodb_that_takes_too_long(
    expanding: Callable[[float], Expanding],
) -> None:
    begun = expanding(EVER_SECONDS)
    began = time.monotonic()
    begun.beat.send_signal(signal.SIGTERM)
    begun.beat.wait()
    assert time.monotonic() - began > 1.5


def test_a_second_signal_ends_a_beat_in_the_middle_of_a_page(
    expanding: Callable[[float], Expanding],
) -> None:
    begun = expanding(EVER_SECONDS)
    begun.beat.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        begun.beat.wait(0.3)
    begun.beat.send_signal(signal.SIGTERM)
    begun.beat.wait()


# -- the API ---------------------------------------------------------------------------------------------


def test_an_api_answers_the_request_at_hand_and_takes_no_other(
    make_stack: Callable[..., Stack], tmp_path: Path
) -> None:
    stack = make_stack()
    port = free_port()
    stack.url = f"http://127.0.0.1:{port}"
    options = ("--config", "deploy/gunicorn.conf.py")
    process = stack.start(
        "api", "gunicorn", *options, "scheduler_app.api:create_app()", API_PORT=str(port), API_PROCESSES="1"
    )
    wait_until(stack._healthy, "the API to answer")
    body = json.dumps({"name": "slow", "callback_url": "http://127.0.0.1:9/", "run_at": soon(3600)}).encode()
    at_hand = http.client.HTTPConnection("127.0.0.1", port)
    at_hand.putrequest("POST", "/api/schedules")
    at_hand.putheader("Content-Type", "application/json")
    at_hand.putheader("Content-Length", str(len(body)))
    at_hand.endheaders(body[:20])
    wait_until(lambda: _is_read(stack), "the request to be read")
    process.send_signal(signal.SIGTERM)
    wait_until(lambda: not stack._healthy(), "the door to be closed")
    at_hand.send(body[20:])
    answer = at_hand.getresponse()
    assert answer.status == 201, answer.read()
    at_hand.close()
    assert process.wait() == 0


def _is_read(stack: Stack) -> bool:
    """Whether a later request has been answered: then the one before it has a thread of its own."""
    return stack._healthy()
