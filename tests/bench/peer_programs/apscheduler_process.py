"""APScheduler 3 in one process: its jobs lie in Redis, 50 threads call."""

import os
import threading
from datetime import datetime

import requests
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.redis import RedisJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from redis import Redis

_of_thread = threading.local()
TAKEN_AT_ONCE = 200


def call(key: str, run_time: str) -> None:
    session = getattr(_of_thread, "session", None)
    if session is None:
        session = _of_thread.session = requests.Session()
        session.trust_env = False
    headers = {"webhook-id": key, "X-Scheduler-Run-Time": run_time}
    session.post(os.environ["PEER_URL"], headers=headers, timeout=30).raise_for_status()


def main() -> None:
    from apscheduler_process import call as importable  # jobs name their function by its module

    client = Redis.from_url(os.environ["PEER_REDIS"], decode_responses=True, socket_timeout=None)
    where = client.connection_pool.connection_kwargs
    store = RedisJobStore(host=where["host"], port=where["port"])
    scheduler = BackgroundScheduler(
        jobstores={"default": store},
        executors={"default": ThreadPoolExecutor(50)},
        job_defaults={"misfire_grace_time": None},
        timezone="UTC",
    )
    scheduler.start()
    print("ready", flush=True)
    while True:
        _, row = client.blpop("plan")
        client.set("taking", 1)
        rows = [row, *(client.lpop("plan", TAKEN_AT_ONCE) or [])]
        for each in rows:
            key, at = each.split()
            scheduler.add_job(importable, "date", run_date=datetime.fromisoformat(at), args=(key, at), id=key)
        client.delete("taking")
        client.rpush("taken", 1)


if __name__ == "__main__":
    main()
