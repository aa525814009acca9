"""The thread of one broker of another Celery application, on a real Redis."""

import queue
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from redis import Redis

from scheduler_app.actions import threaded
from scheduler_app.actions.celery_task.broker_thread import POLL_SECONDS, BrokerThread, TaskRequest
from scheduler_app.actions.celery_task.executor import CeleryTaskExecutor
from scheduler_app.actions.kind import Outcome
from scheduler_app.actions.threaded import ToldOutcome
from scheduler_app.clock import monotonic
from scheduler_app.domain.celery_task_action import AllowedTasks, CeleryTaskAction
from tests.builders import event, schedule
from tests.processes import PATIENCE_SECONDS, wait_until

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_an_attempt_that_was_interrupted_before_it_was_sent_is_not_sent(redis_url: str) -> None:
    told: queue.SimpleQueue[ToldOutcome] = queue.SimpleQueue()
    thread = BrokerThread("shop", redis_url, None, told.put)
    action = CeleryTaskAction("shop.bill", "shop", queue="bills")
    for serial, name in enumerate(("interrupted", "later")):
        thread.put(TaskRequest(serial, event(NOON, name), action, monotonic() + 170))
    thread.drop_before(1)
    thread.start()
    try:
        found = told.get(timeout=PATIENCE_SECONDS)
    finally:
        thread.stop()
        thread.join(PATIENCE_SECONDS)
    assert (found.serial, found.outcome) == (1, Outcome.SUCCESS)
    with Redis.from_url(redis_url) as broker:
        (sent,) = broker.lrange("bills", 0, -1)
    assert b"interrupted" not in sent


def test_a_result_that_is_no_json_fails_its_own_task_alone(redis_url: str) -> None:
    told: queue.SimpleQueue[ToldOutcome] = queue.SimpleQueue()
    thread = BrokerThread("shop", redis_url, redis_url, told.put)
    action = CeleryTaskAction("shop.bill", "shop", queue="bills", wait=True)
    with Redis.from_url(redis_url) as results:
        results.set("celery-task-meta-bent", "no JSON")
        results.set("celery-task-meta-sound", '{"status": "SUCCESS", "result": 7}')
    for serial, name in enumerate(("bent", "sound")):
        thread.put(TaskRequest(serial, event(NOON, name, id=name), action, monotonic() + 170))
    thread.start()
    try:
        both = [told.get(timeout=PATIENCE_SECONDS) for _ in range(2)]
    finally:
        thread.stop()
        thread.join(PATIENCE_SECONDS)
    found = {each.event_id: each for each in both}
    assert found["sound"].outcome is Outcome.SUCCESS
    assert found["bent"].outcome is Outcome.PERMANENT
    assert "cannot be read" in found["bent"].reason


def test_a_result_backend_that_is_away_is_logged_once_and_named_in_the_history(
    redis_url: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    action = CeleryTaskAction("shop.bill", "shop", queue="bills", wait=True)
    schedule_of = replace(schedule(NOON), action=action, timeout_seconds=PATIENCE_SECONDS)
    allowed = AllowedTasks.parse(["shop:*@*"], "scheduler")
    results = {"shop": "redis://127.0.0.1:1/0"}
    executor = CeleryTaskExecutor({"shop": redis_url}, results, allowed, concurrency=9, ready=lambda: None)
    executor.start(event(NOON, "s1"), schedule_of, NOON)
    thread = executor._threads["shop"]
    try:
        wait_until(lambda: thread.knows_no_results, "a look for the result")
        seen = thread._looks_at
        wait_until(lambda: thread._looks_at > seen + 2 * POLL_SECONDS, "more of them")
        monkeypatch.setattr(threaded, "monotonic", lambda: monotonic() + PATIENCE_SECONDS)  # its time is over
        (found,) = executor.wait(0.0)
    finally:
        executor.close()
    assert "the result backend of shop does not answer" in (found.error or "")
    said = capsys.readouterr()
    assert (said.out + said.err + caplog.text).count("celery_task.results_unknown") == 1


def test_a_task_whose_earlier_result_is_no_json_is_sent_again(redis_url: str) -> None:
    told: queue.SimpleQueue[ToldOutcome] = queue.SimpleQueue()
    thread = BrokerThread("shop", redis_url, redis_url, told.put)
    action = CeleryTaskAction("shop.bill", "shop", queue="bills", wait=True)
    with Redis.from_url(redis_url) as results:
        results.set("celery-task-meta-again", "no JSON")
        thread.put(TaskRequest(0, event(NOON, id="again", attempt=1), action, monotonic() + 170))
        thread.start()
        try:
            wait_until(lambda: results.llen("bills") == 1, "the task to be sent")
            assert not results.exists("celery-task-meta-again")
        finally:
            thread.stop()
            thread.join(PATIENCE_SECONDS)
    assert told.empty()
