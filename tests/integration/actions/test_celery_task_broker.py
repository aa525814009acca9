"""The thread of one broker of another Celery application, on a real Redis."""

import queue
from datetime import UTC, datetime

from redis import Redis

from scheduler_app.actions.celery_task.asked import Asked, Told
from scheduler_app.actions.celery_task.broker_thread import BrokerThread
from scheduler_app.actions.executor import Outcome
from scheduler_app.clock import monotonic
from scheduler_app.domain.celery_task_action import CeleryTaskAction
from tests.builders import event

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_an_attempt_that_was_interrupted_before_it_was_sent_is_not_sent(redis_url: str) -> None:
    told: queue.SimpleQueue[Told] = queue.SimpleQueue()
    thread = BrokerThread("shop", redis_url, None, told.put)
    action = CeleryTaskAction("shop.bill", "shop", queue="bills")
    for serial, name in enumerate(("interrupted", "later")):
        thread.put(Asked(serial, event(NOON, name), action, monotonic() + 60))
    thread.drop_before(1)
    thread.start()
    try:
        found = told.get(timeout=20)
    finally:
        thread.stop()
        thread.join(20)
    assert (found.serial, found.outcome) == (1, Outcome.SUCCESS)
    with Redis.from_url(redis_url) as broker:
        (sent,) = broker.lrange("bills", 0, -1)
    assert b"interrupted" not in sent
