"""The whole product over RabbitMQ, whose server, workers and queues are lost."""

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
from click.testing import CliRunner

from scheduler_app.cli import main
from scheduler_app.embedded import RabbitMQ, free_port
from tests.acceptance.chaos.proxy import Link
from tests.acceptance.journal import Journal
from tests.acceptance.stack import Stack
from tests.integration.actions.receiver import hangs
from tests.processes import Program, wait_until
from tests.rabbitmq_control import NO_MEMORY, USUAL_MEMORY, control, lane_queues

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def rabbitmq() -> Iterator[RabbitMQ]:
    with (
        tempfile.TemporaryDirectory(prefix="rabbitmq-") as folder,
        RabbitMQ(Path(folder), free_port(), password="only-for-tests") as server,
    ):
        yield server


@pytest.fixture(scope="module")
def link(rabbitmq: RabbitMQ) -> Iterator[Link]:
    with Link(rabbitmq.port) as made:
        yield made


@pytest.fixture(scope="module")
def stack(make_stack: Callable[..., Stack], rabbitmq: RabbitMQ, link: Link) -> Stack:
    """All processes reach RabbitMQ by a link that can be cut."""
    ready = make_stack(BROKER_URL=rabbitmq.url.replace(str(rabbitmq.port), str(link.port)))
    ready.all()
    return ready


UP = (sys.executable, "-m", "scheduler_app.cli", "up", "--worker-count", "1", "--broker", "rabbitmq")


def runs(process: psutil.Process) -> bool:
    """Whether it has not ended; what has no parent left may remain a zombie in a container."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def beat_log(stack: Stack) -> str:
    return (stack.folder / "beat.log").read_text()


def worker_log(stack: Stack) -> str:
    return (stack.folder / "worker.log").read_text()


def messages(stack: Stack, rabbitmq: RabbitMQ) -> int:
    """How many wait in the lanes, or are held by a worker."""
    lanes = lane_queues(stack.environment["MONGO_DATABASE"])
    rows = [row.split("\t") for row in control(rabbitmq, "list_queues", "name", "messages").splitlines()]
    return sum(int(count) for name, count in rows if name in lanes)


def completed(stack: Stack, schedules: list[str]) -> bool:
    return all(stack.finished(each)[0]["state"] == "completed" for each in schedules)


def test_callbacks_arrive_now_and_on_time(stack: Stack, journal: Journal) -> None:
    later = stack.create_many(20, journal.url("/later"), delay_seconds=6)
    now = stack.create(journal.url("/now"), rrule="FREQ=YEARLY")
    stack.post(f"/schedules/{now}/trigger", status=202)
    assert completed(stack, [now])
    assert completed(stack, later)
    assert len(journal.calls["/later"]) == 20
    for call in journal.calls["/later"]:
        assert call.at >= datetime.fromisoformat(call.run_time).timestamp()


def test_limits_that_nobody_could_keep_are_refused_with_what_to_set(stack: Stack) -> None:
    body = {"url": "http://127.0.0.1:9/"}
    assert requests.put(f"{stack.url}/api/destinations/free", json=body).status_code == 201
    for field, value in (
        ("rate_per_second", 5),
        ("concurrency", 1),
        ("breaker", {"failures": 3, "open_seconds": 5}),
    ):
        answer = requests.put(f"{stack.url}/api/destinations/d", json=body | {field: value})
        assert answer.status_code == 422, answer.text
        assert field in answer.text
        assert "FLOW_CONTROL_URL" in answer.text


@pytest.mark.chaos
def test_what_a_killed_worker_held_is_sent_by_the_next(
    stack: Stack, journal: Journal, rabbitmq: RabbitMQ
) -> None:
    wait_until(lambda: messages(stack, rabbitmq) == 0, "the queues to be empty", pause=0.2)
    worker = stack.running[-1]
    # It takes the message, and keeps it for as long as this machine needs to look.
    os.killpg(worker.pid, signal.SIGSTOP)
    made = stack.create_many(20, journal.url("/held"), delay_seconds=9)
    wait_until(lambda: messages(stack, rabbitmq) > 0, "a message to be held", pause=0.2)
    stack.kill(worker)
    stack.worker()
    assert completed(stack, made)
    assert len(journal.calls["/held"]) == 20


@pytest.mark.chaos
def test_a_worker_survives_the_death_of_rabbitmq_and_delivers_when_it_is_back(
    stack: Stack, journal: Journal, rabbitmq: RabbitMQ
) -> None:
    url = journal.script("/slow", hangs)
    slow = stack.create(url, rrule="FREQ=YEARLY", timeout_seconds=5, max_retries=0)
    stack.post(f"/schedules/{slow}/trigger", status=202)
    wait_until(lambda: bool(journal.calls["/slow"]), "the request to be in flight")
    made = stack.create_many(5, journal.url("/after"), delay_seconds=4)
    rabbitmq.kill()
    wait_until(lambda: bool(stack.finished(slow)), "the request to end without RabbitMQ")
    rabbitmq.start()
    assert completed(stack, made)
    assert len(journal.calls["/after"]) == 5


@pytest.mark.chaos
def test_queues_that_were_deleted_are_made_again(stack: Stack, journal: Journal, rabbitmq: RabbitMQ) -> None:
    for queue in lane_queues(stack.environment["MONGO_DATABASE"]):
        control(rabbitmq, "delete_queue", queue)
    made = stack.create_many(5, journal.url("/emptied"), delay_seconds=3)
    assert completed(stack, made)
    assert len(journal.calls["/emptied"]) == 5


def test_everything_that_looks_at_a_rabbitmq_with_an_alarm_names_it_and_its_return(
    stack: Stack, rabbitmq: RabbitMQ
) -> None:
    def broker() -> tuple[int, dict[str, Any]]:
        answer = requests.get(f"{stack.url}/readyz", timeout=20)
        return answer.status_code, answer.json()["checks"]["broker"]

    def up() -> bool:
        scraped = requests.get(f"{stack.url}/metrics", timeout=20).text
        return 'scheduler_dependency_up{dependency="broker"} 1.0' in scraped

    wait_until(lambda: broker()[0] == 200 and up(), "the stack to be ready", pause=0.2)
    control(rabbitmq, "set_vm_memory_high_watermark", NO_MEMORY)
    try:
        wait_until(lambda: broker()[0] == 503 and not up(), "the alarm to be noticed", pause=0.2)
        said = str(broker()[1])
        assert "RabbitMQ takes no messages" in said
        assert "rabbitmq-diagnostics alarms" in said
        # However often it is asked: an answer to a question is no sign of its return.
        assert [broker()[0] for _ in range(5)] == [503] * 5
        command = ["doctor", "--flower-url", "http://127.0.0.1:9"]
        said = CliRunner().invoke(main, command, env=stack.environment, catch_exceptions=False).stdout
        assert "takes no messages" in said
        assert "REDIS_HOST" not in said
    finally:
        control(rabbitmq, "set_vm_memory_high_watermark", USUAL_MEMORY)
    wait_until(lambda: broker()[0] == 200 and up(), "its return to be noticed", pause=0.2)


@pytest.mark.chaos
def test_beat_waits_no_longer_than_seconds_for_a_full_rabbitmq(
    stack: Stack, journal: Journal, rabbitmq: RabbitMQ
) -> None:
    control(rabbitmq, "set_vm_memory_high_watermark", NO_MEMORY)
    try:
        made = stack.create_many(5, journal.url("/full"), delay_seconds=1)
        wait_until(lambda: "confirmed no message" in beat_log(stack), "beat to give a publish up")
    finally:
        control(rabbitmq, "set_vm_memory_high_watermark", USUAL_MEMORY)
    assert completed(stack, made)
    assert len(journal.calls["/full"]) == 5


@pytest.mark.chaos
def test_a_cut_line_holds_nobody_up_for_long_and_loses_nothing(
    stack: Stack, journal: Journal, link: Link
) -> None:
    link.cut()
    try:
        before = beat_log(stack).count("broker")
        made = stack.create_many(5, journal.url("/cut"), delay_seconds=1)
        wait_until(lambda: beat_log(stack).count("broker") > before, "beat to give a publish up")
        # The worker has heartbeats, and looks for another connection.
        wait_until(lambda: "Too many heartbeats missed" in worker_log(stack), "the worker to notice")
    finally:
        link.restore()
    assert completed(stack, made)
    assert len(journal.calls["/cut"]) == 5


@pytest.mark.long
def test_up_runs_everything_over_rabbitmq(tmp_path: Path, run: Callable[..., Program]) -> None:
    up = run(*UP, "--port", str(free_port()), "--data-dir", str(tmp_path / "data"))
    up.wait_for(r"^Everything is ready")
    up.wait_for(r"^  RabbitMQ +amqp://scheduler:\*\*\*@127\.0\.0\.1:\d+//$")
    api = up.wait_for(r"^  API +(http://\S+)$")[1]
    wait_until(lambda: requests.get(f"{api}/readyz").status_code == 200, "the API to be ready", pause=0.2)
    config = up.wait_for(r"^  Doctor +.*scheduler doctor --config (.*)$")[1]
    doctor = run(sys.executable, "-m", "scheduler_app.cli", "doctor", "--config", config)
    assert doctor.wait() == 0, doctor.output
    assert "rabbitmq alarms" in doctor.output
    started = up.processes()
    up.signal(signal.SIGINT)
    assert up.wait() == 0
    assert not [each for each in started if runs(each)]


def test_up_without_a_rabbitmq_server_is_one_sentence(tmp_path: Path, run: Callable[..., Program]) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    up = run(*UP, "--data-dir", str(tmp_path / "data"), PATH=str(empty))
    assert up.wait() == 1
    assert "apt install rabbitmq-server" in up.output
    assert "Traceback" not in up.output
