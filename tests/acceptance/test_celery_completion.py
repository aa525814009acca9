"""Tasks of a user's own that tell by our base class how they ended: real workers on both sides."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from celery import Celery

from scheduler_app.embedded import free_port
from tests.acceptance.stack import CODE, Stack
from tests.celery_application import WITHOUT_RESULTS, CeleryApplication
from tests.processes import Program, wait_until


class Workers:
    """The application's worker: one for all tests that need no other."""

    def __init__(self, shop: CeleryApplication) -> None:
        self._shop = shop
        self._running: list[Program] = []

    def telling(self, url: str) -> Program:
        """The worker that tells this API; it is started if there is none."""
        return self._running[0] if self._running else self.another(url)

    def another(self, url: str) -> Program:
        """A worker in the place of the one that runs."""
        self.end()
        self._running = [self._shop.worker(SCHEDULER_URL=url)]
        self._running[0].wait_for("ready")
        return self._running[0]

    def end(self) -> None:
        for each in self._running:
            each.kill()
        self._running = []


@pytest.fixture(scope="module")
def of_module(shop: CeleryApplication) -> Iterator[Workers]:
    made = Workers(shop)
    yield made
    made.end()


@pytest.fixture
def workers(of_module: Workers, shop: CeleryApplication) -> Workers:
    shop.forget_records()
    return of_module


def create(stack: Stack, *, count: int = 1, **fields: Any) -> str:
    action = {"type": "celery_task", "task": "shop.tells", "broker": WITHOUT_RESULTS}
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
    stack: Stack, shop: CeleryApplication, workers: Workers
) -> None:
    schedule = create(stack, count=3)
    # An event runs from the worker's claim on, before its task is sent.
    wait_until(
        lambda: sum("Accepted: it runs until" in last for last in _last_lines(stack, schedule)) == 3,
        "the tasks to be sent",
    )
    assert [event["state"] for event in stack.events(schedule, "pending")] == ["running"] * 3
    workers.telling(stack.url)
    events = stack.finished(schedule, 3)
    assert {event["state"] for event in events} == {"completed"}
    assert sorted(shop.recorded()) == sorted(event["_id"] for event in events)


def test_a_task_that_fails_fails_its_event_with_the_exception_but_for_its_arguments(
    stack: Stack, workers: Workers
) -> None:
    schedule = create(stack, kwargs={"problem": "hunter2"})
    workers.telling(stack.url)
    (event,) = stack.finished(schedule, 1)
    assert event["state"] == "error"
    assert "ValueError: cannot print ********" in event["status"][-1]["message"]
    assert "hunter2" not in str(event)


def test_retries_of_celery_s_own_lie_within_the_attempt(
    stack: Stack, shop: CeleryApplication, workers: Workers
) -> None:
    schedule = create(stack, kwargs={"retries": 2})
    workers.telling(stack.url)
    (event,) = stack.finished(schedule, 1)
    assert (event["state"], event["attempt"]) == ("completed", 1)
    assert shop.recorded() == [event["_id"]] * 3


def test_a_task_that_nobody_scheduled_is_an_ordinary_one(
    stack: Stack, shop: CeleryApplication, workers: Workers
) -> None:
    worker = workers.telling(stack.url)
    with Celery("by hand", broker=shop.broker, set_as_current=False) as application:
        application.send_task("shop.tells", task_id="by-hand", ignore_result=True)
    worker.wait_for(r"shop\.tells\[by-hand\] succeeded")
    assert shop.recorded() == ["by-hand"]
    assert " told " not in worker.output


def test_a_task_succeeds_also_where_the_scheduler_cannot_be_told(stack: Stack, workers: Workers) -> None:
    worker = workers.another(f"http://127.0.0.1:{free_port()}")
    schedule = create(stack, completion_timeout_seconds=4)
    worker.wait_for(r"The scheduler was not told how event \S+ ended: .*cannot be reached")
    worker.wait_for(r"shop\.tells\[\S+\] succeeded")
    (event,) = stack.finished(schedule, 1)
    assert event["state"] == "error"


def test_callback_and_wait_are_not_both_asked_for(stack: Stack) -> None:
    action = {"type": "celery_task", "task": "shop.tells", "broker": WITHOUT_RESULTS, "wait": True}
    body = {"name": "both", "rrule": "FREQ=DAILY", "action": action, "completion": "callback"}
    answer = requests.post(f"{stack.url}/api/schedules", json=body)
    assert answer.status_code == 422
    assert "leave one of them out" in answer.text
    assert "completion" in answer.text


def test_the_manual_s_application_completes_the_manual_s_schedule(
    stack: Stack, shop: CeleryApplication, workers: Workers, tmp_path: Path, run: Callable[..., Program]
) -> None:
    workers.end()  # it has no such task
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
    (event,) = stack.finished(schedule, 1)
    assert event["state"] == "completed"


def _manual(language: str) -> str:
    """The block of the manual."""
    mark = f"<!-- run by tests/acceptance/test_celery_completion.py -->\n```{language}\n"
    return (CODE / "docs" / "celery-tasks.md").read_text().split(mark)[1].split("```")[0]


def _last_lines(stack: Stack, schedule: str) -> list[str]:
    """What was noted last of each event that is not finished."""
    return [event["status"][-1]["message"] for event in stack.events(schedule, "pending")]
