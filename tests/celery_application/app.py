"""The tasks. A worker of this module is what `celery -A shop worker` is to a user."""

import os
from typing import Any

import redis
from celery import Celery, Task
from celery.exceptions import Ignore

from scheduler_app.client.celery import ScheduledTask

app = Celery("shop", broker=os.environ["SHOP_BROKER"], backend=os.environ["SHOP_RESULTS"])
app.conf.update(task_serializer="json", accept_content=["json"], broker_connection_retry_on_startup=True)
# What a killed worker held comes back after an hour by default.
app.conf.broker_transport_options = {
    "visibility_timeout": 15,
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,
    "unacked_mutex_expire": 10,
}
_records = redis.Redis.from_url(os.environ["SHOP_RECORDS"])


@app.task(name="shop.ok")  # type: ignore[untyped-decorator]
def ok(*args: Any, **kwargs: Any) -> str:
    return "done"


@app.task(name="shop.fail")  # type: ignore[untyped-decorator]
def fail(password: str = "") -> None:
    raise ValueError(f"you sent {password}")


@app.task(name="shop.refuse", bind=True)  # type: ignore[untyped-decorator]
def refuse(self: Task) -> None:
    self.update_state(state="REVOKED")
    raise Ignore


@app.task(name="shop.record", bind=True, acks_late=True, reject_on_worker_lost=True)  # type: ignore[untyped-decorator]
def record(self: Task, *args: Any, **kwargs: Any) -> dict[str, Any]:
    _records.rpush("recorded", self.request.id)
    names = ("scheduler_event_id", "scheduler_run_time", "x-tenant")
    headers = {name: self.request.get(name) for name in names}
    return {"args": args, "kwargs": kwargs, "headers": headers}


@app.task(name="shop.tells", bind=True, base=ScheduledTask)  # type: ignore[untyped-decorator]
def tells(self: Task, problem: str = "", retries: int = 0) -> str:
    """Ends in `problem`, if there is one, after it has asked Celery for so many retries."""
    _records.rpush("recorded", self.request.id)
    if self.request.retries < retries:
        raise self.retry(countdown=0, exc=RuntimeError("not yet"))
    if problem:
        raise ValueError(f"cannot print {problem}")
    return "done"
