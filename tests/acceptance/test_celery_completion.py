"""Tasks of a user's own that tell by our base class how they ended: real workers on both sides."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from celery import Celery

from scheduler_app.embedded import Redis, free_port
from tests.acceptance.stack import CODE, Stack
from tests.celery_application import BROKER, CeleryApplication, celery_application
from tests.processes import Program, wait_until


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CeleryApplication]:
    with Redis(tmp_path_factory.mktemp("shop-redis")) as redis, celery_application(redis) as application:
        yield application


@pytest.fixture(scope="module")
def stack(make_stack: Callable[..., Stack], shop: CeleryApplication) -> Stack:
    """It knows no result backend."""
    ready = make_stack(CELERY_BROKERS=f"{BROKER}={shop.broker}")
    ready.all()
    return ready


@pytest.fixture
def start(shop: CeleryApplication, stack: Stack) -> Iterator[Callable[..., Program]]:
    """Starts a worker of the application, which tells our API."""
    shop.forget_records()
    started: list[Program] = []

    def worker(url: str = "") -> Program:
        started.append(shop.worker(SCHEDULER_URL=url or stack.url))
        started[-1].wait_for("ready")
        return started[-1]

    yield worker
    for each in started:
        each.kill()


def create(stack: Stack, *, count: int = 1, **fields: Any) -> str:
    action = {"type": "celery_task", "task": "shop.tells", "broker": BROKER}
    body = {
        "name": "tells",
        "rrule": f"FREQ=SECONDLY;COUNT={count}",
        "action": action | {"kwargs": fields.pop("kwargs", {})},
        "completion": "callback",
        "max_retries": 0,
        **fields,
    }
    made: str = stack.post("/schedules", body)["id"]
    return made


def test_an_event_runs_until_its_task_has_succeeded(
    stack: Stack, shop: CeleryApplication, start: Callable[..., Program]
) -> None:
    schedule = create(stack, count=3)
    # An event runs from the worker's claim on, before its task is sent.
    wait_until(
        lambda: sum("Accepted: it runs until" in last for last in _last_lines(stack, schedule)) == 3,
        "the tasks to be sent",
    )
    assert [event["state"] for event in stack.events(schedule, "pending")] == ["running"] * 3
    start()
    events = stack.finished(schedule, 3, 60)
    assert {event["state"] for event in events} == {"completed"}
    assert sorted(shop.recorded()) == sorted(event["_id"] for event in events)


def test_a_task_that_fails_fails_its_event_with_the_exception_but_for_its_arguments(
    stack: Stack, start: Callable[..., Program]
) -> None:
    schedule = create(stack, kwargs={"problem": "hunter2"})
    start()
    (event,) = stack.finished(schedule, 1, 60)
    assert event["state"] == "error"
    assert "ValueError: cannot print ********" in event["status"][-1]["message"]
    assert "hunter2" not in str(event)


def test_retries_of_celery_s_own_lie_within_the_attempt(
    stack: Stack, shop: CeleryApplication, start: Callable[..., Program]
) -> None:
    schedule = create(stack, kwargs={"retries": 2})
    start()
    (event,) = stack.finished(schedule, 1, 60)
    assert (event["state"], event["attempt"]) == ("completed", 1)
    assert shop.recorded() == [event["_id"]] * 3


def test_a_task_succeeds_also_where_the_scheduler_cannot_be_told(
    stack: Stack, start: Callable[..., Program]
) -> None:
    schedule = create(stack, completion_timeout_seconds=4)
    worker = start(f"http://127.0.0.1:{free_port()}")
    worker.wait_for(r"The scheduler was not told how event \S+ ended: .*cannot be reached")
    worker.wait_for(r"shop\.tells\[\S+\] succeeded")
    (event,) = stack.finished(schedule, 1, 60)
    assert event["state"] == "error"


def test_a_task_that_nobody_scheduled_is_an_ordinary_one(
    shop: CeleryApplication, start: Callable[..., Program]
) -> None:
    worker = start()
    with Celery("by hand", broker=shop.broker, set_as_current=False) as application:
        application.send_task("shop.tells", task_id="by-hand", ignore_result=True)
    worker.wait_for(r"shop\.tells\[by-hand\] succeeded")
    assert shop.recorded() == ["by-hand"]
    assert " told " not in worker.output


def test_callback_and_wait_are_not_both_asked_for(stack: Stack) -> None:
    action = {"type": "celery_task", "task": "shop.tells", "broker": BROKER, "wait": True}
    body = {"name": "both", "rrule": "FREQ=DAILY", "action": action, "completion": "callback"}
    answer = requests.post(f"{stack.url}/api/schedules", json=body, timeout=20)
    assert answer.status_code == 422
    assert "leave one of them out" in answer.text
    assert "completion" in answer.text


def test_the_manual_s_application_completes_the_manual_s_schedule(
    stack: Stack, shop: CeleryApplication, tmp_path: Path, run: Callable[..., Program]
) -> None:
    here = {"redis://shop-redis:6379/0": shop.broker, "http://scheduler:8080": stack.url}
    program = _manual("python")
    for shown, real in here.items():
        assert shown in program
        program = program.replace(shown, real)
    (tmp_path / "manual.py").write_text(program)
    body = json.loads(_manual("json")) | {"rrule": "FREQ=SECONDLY;COUNT=1"}
    del body["cron"]
    schedule = stack.post("/schedules", body)["id"]
    options = ("--pool", "threads", "--concurrency", "1", "-n", "manual@shop")
    path = f"{tmp_path}:{CODE}"
    run(sys.executable, "-m", "celery", "-A", "manual", "worker", *options, PYTHONPATH=path)
    (event,) = stack.finished(schedule, 1, 60)
    assert event["state"] == "completed"


def _manual(language: str) -> str:
    """The block of the manual."""
    mark = f"<!-- run by tests/acceptance/test_celery_completion.py -->\n```{language}\n"
    return (CODE / "docs" / "celery-tasks.md").read_text().split(mark)[1].split("```")[0]


def _last_lines(stack: Stack, schedule: str) -> list[str]:
    """What was noted last of each event that is not finished."""
    return [event["status"][-1]["message"] for event in stack.events(schedule, "pending")]
