"""Schedules that send tasks to a user's own Celery application: real workers on both sides."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.stack import Stack
from tests.celery_application import BROKER, CeleryApplication
from tests.processes import Program, wait_until

#: A dump of django-celery-beat's tables, as `dumpdata` writes it.
EVERY_SECOND = [
    {"model": "django_celery_beat.intervalschedule", "pk": 1, "fields": {"every": 1, "period": "seconds"}},
    {
        "model": "django_celery_beat.periodictask",
        "pk": 1,
        "fields": {
            "name": "each-second",
            "task": "shop.record",
            **dict.fromkeys(("crontab", "solar", "clocked", "queue", "exchange", "routing_key", "priority")),
            **dict.fromkeys(("expires", "expire_seconds", "start_time", "last_run_at")),
            "interval": 1,
            "args": '["EUR"]',
            "kwargs": '{"limit": 5}',
            "headers": "{}",
            "one_off": False,
            "enabled": True,
            "total_run_count": 0,
            "date_changed": "2026-10-01T08:00:00.123Z",
            "description": "",
        },
    },
]


@pytest.fixture(scope="module")
def one_worker(shop: CeleryApplication) -> Iterator[Program]:
    started = shop.worker()
    started.wait_for("ready")
    yield started
    started.kill()


@pytest.fixture
def worker(shop: CeleryApplication, one_worker: Program) -> Program:
    """The application's, with nothing recorded."""
    shop.forget_records()
    return one_worker


def create(stack: Stack, name: str, rule: str, **fields: object) -> str:
    action = {"type": "celery_task", "task": name, "broker": BROKER} | fields
    body = {"name": name, "rrule": rule, "action": action, "max_retries": 5, "timeout_seconds": 20}
    made: str = stack.post("/schedules", body)["id"]
    return made


def each_second(count: int) -> str:
    return f"FREQ=SECONDLY;COUNT={count}"


def test_without_wait_the_event_is_completed_when_the_broker_has_the_task(
    stack: Stack, shop: CeleryApplication
) -> None:
    shop.forget_records()
    schedule = create(stack, "shop.record", each_second(2))
    events = stack.finished(schedule, 2)  # no worker runs the tasks yet: this test is the first
    assert {event["state"] for event in events} == {"completed"}
    assert shop.recorded() == []
    late = shop.worker()
    try:
        wait_until(lambda: len(shop.recorded()) == 2, "the tasks to run")
        # One that is not acknowledged would run again, in the midst of a later test.
        wait_until(lambda: shop.held() == 0, "the tasks to be acknowledged")
    finally:
        late.kill()
    assert sorted(shop.recorded()) == sorted(event["_id"] for event in events)


def test_a_task_runs_with_the_event_s_id_and_its_result_completes_the_event(
    stack: Stack, shop: CeleryApplication, worker: Program
) -> None:
    schedule = create(
        stack, "shop.record", each_second(3), args=[1], kwargs={"a": 2}, event_kwarg="event", wait=True
    )
    events = stack.finished(schedule, 3)
    assert {event["state"] for event in events} == {"completed"}
    assert sorted(shop.recorded()) == sorted(event["_id"] for event in events)
    snippet = events[0]["attempts"][0]["snippet"]
    assert "'args': [1]" in snippet
    assert events[0]["_id"] in snippet


def test_a_task_that_fails_is_tried_again_under_its_id(
    stack: Stack, shop: CeleryApplication, worker: Program
) -> None:
    action = {"type": "celery_task", "task": "shop.fail", "broker": BROKER, "wait": True}
    body = {"name": "fails", "rrule": each_second(1), "action": action, "max_retries": 1}
    schedule = stack.post("/schedules", body)["id"]
    wait_until(lambda: bool(stack.events(schedule) and stack.events(schedule)[0]["attempts"]), "an attempt")
    (event,) = stack.events(schedule)
    assert "the task ended as FAILURE: ValueError: you sent" in str(event["attempts"][0]["error"])


def test_the_manual_s_example_is_taken(stack: Stack) -> None:
    text = (Path(__file__).parent.parent.parent / "docs" / "celery-tasks.md").read_text()
    (body,) = re.findall(
        r"run by tests/acceptance/test_celery_tasks.py -->\n```bash\n.*?-d '(.*?)'\n```", text, re.S
    )
    made = stack.post("/schedules", json.loads(body))
    assert made["action"]["task"] == "shop.tasks.bill"


def test_what_celery_beat_sent_is_sent_by_its_imported_schedule(
    stack: Stack, shop: CeleryApplication, worker: Program, tmp_path: Path, run: Callable[..., Program]
) -> None:
    dump = tmp_path / "beat.json"
    dump.write_text(json.dumps(EVERY_SECOND))
    command = ("scheduler_app.cli", "import-celery-beat", "--broker", BROKER, "--dump", str(dump))
    done = run(sys.executable, "-m", *command, **stack.environment, SCHEDULER_URL=stack.url)
    assert done.wait() == 0, done.output
    schedule = "beat-each-second"
    events = stack.finished(schedule, 2)
    stack.post(f"/schedules/{schedule}/pause", status=200)
    assert {event["state"] for event in events} == {"completed"}
    wait_until(lambda: {event["_id"] for event in events} <= set(shop.recorded()), "the tasks to run")
    worker.wait_for(r"'args': \('EUR',\), 'kwargs': \{'limit': 5\}")


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_a_thousand_tasks_run_while_workers_of_both_sides_are_killed(
    stack: Stack, shop: CeleryApplication
) -> None:
    shop.forget_records()
    schedules = [create(stack, "shop.record", each_second(100), wait=number % 2 == 0) for number in range(10)]
    side = shop.worker()
    ours = stack.worker("second")
    for _ in range(3):
        seen = len(shop.recorded())
        wait_until(lambda seen=seen: len(shop.recorded()) >= seen + 150, "tasks to run")  # type: ignore[misc]
        side.kill()
        side = shop.worker()
        stack.kill(ours)
        ours = stack.worker("second")
    try:
        wait_until(lambda: all(len(stack.events(each, limit=200)) >= 100 for each in schedules), "all")
        events = [event for each in schedules for event in stack.finished(each, 100)]
        wait_until(lambda: len(set(shop.recorded())) == 1000, "each task to run once at least")
    finally:
        side.kill()
    assert set(shop.recorded()) == {event["_id"] for event in events}
    assert {event["state"] for event in events} == {"completed"}
