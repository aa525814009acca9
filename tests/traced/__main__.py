"""Goes one way through the product in this process, and prints what each thread entered: see `ways.traced`.

`python -m tests.traced POST MONGO_URI DATABASE REDIS_URL`
"""

import json
import sys
from contextlib import closing
from typing import Any

from celery.contrib.testing.worker import start_worker

from scheduler_app import worker_signals
from scheduler_app.broker.app import make_app
from scheduler_app.config import Settings
from tests.acceptance.journal import Journal
from tests.builders import schedule, use_ordinary_timeouts
from tests.golden.product import BEGIN, Product, held_time
from tests.processes import PATIENCE_SECONDS, wait_until
from tests.traced.tracer import Tracer

SCHEDULE = "s"
EVERY_SECONDS = 60

Seen = dict[str, dict[str, Any]]


def post(product: Product, tracer: Tracer) -> list[Seen]:
    """The first and the second request of a process. The first occurrences of their schedules become events
    at once; none of them is due."""
    body = {"name": "test", "every_seconds": EVERY_SECONDS, "callback_url": "http://127.0.0.1:9/"}
    found = []
    for _ in range(2):
        tracer.start()
        answer = product.client.post("/api/schedules", json=body)
        found.append(tracer.stop())
        assert answer.status_code == 201, answer.text
    return found


def occurrence(product: Product, tracer: Tracer) -> list[Seen]:
    """The first occurrence in a process that is beat and worker. The clock stands still 0.1 s before it falls
    due, so that its message has no time to wait for, until the worker has claimed it."""
    use_ordinary_timeouts()
    with closing(Journal()) as receiver:
        made = schedule(BEGIN, SCHEDULE, every_seconds=EVERY_SECONDS, url=receiver.url("/"))
        product.made.store.schedules.insert(made)
        product.time.pass_by(seconds=EVERY_SECONDS - 0.1)
        with start_worker(make_app(product.settings), pool="threads", perform_ping_check=False):
            beat = product.beat("expand", "dispatch")
            tracer.start()
            beat.run()
            tracer.leave_this_thread_out()
            wait_until(lambda: _state(product) == "running", "the claim")
            product.time.pass_by(seconds=0.1)
            wait_until(lambda: _state(product) == "completed", "the record")
            worker = worker_signals._worker
            assert worker is not None
            assert worker.pipeline.wait_until_empty(PATIENCE_SECONDS)
            return [tracer.stop()]


def _state(product: Product) -> Any:
    events = product.database["events"]
    found = events.find_one({"schedule_id": SCHEDULE}, sort=[("run_time", 1)])
    return found and found["state"]


def main(way: str, mongo_uri: str, database: str, redis_url: str) -> None:
    settings = Settings(
        mongo_uri=mongo_uri,
        mongo_database=database,
        broker_url=redis_url,
        callback_allowed_networks="127.0.0.0/8",
    )
    tracer = Tracer().install()
    with held_time() as time:
        found = {"POST": post, "occurrence": occurrence}[way](Product(settings, time), tracer)
    print(json.dumps(found))


main(*sys.argv[1:])
