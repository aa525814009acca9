"""A Celery application such as a user has, with its own broker, result backend and workers."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redis import Redis as RedisClient

from scheduler_app.domain.celery_task_action import CeleryTaskAction
from scheduler_app.embedded.brokers import Redis
from tests.processes import Program

#: The name by which schedules call its broker.
BROKER = "shop"
#: Another name of the same broker, for which the scheduler knows no result backend.
WITHOUT_RESULTS = "shop-without-results"
#: The list in Redis to which the task `record` appends the id of each run.
RECORDED = "recorded"


class CeleryApplication:
    """The running application: where its broker and results are, and what its tasks have done."""

    def __init__(self, redis: Redis, folder: Path) -> None:
        self._folder = folder
        self.broker = f"{redis.url.rsplit('/', 1)[0]}/1"
        self.results = f"{redis.url.rsplit('/', 1)[0]}/2"
        self.redis = RedisClient.from_url(f"{redis.url.rsplit('/', 1)[0]}/3", decode_responses=True)

    def worker(self, *arguments: str, **more: str) -> Program:
        """Starts one of its workers; `more` is for its environment."""
        root = Path(__file__).parent.parent.parent
        command = (sys.executable, "-m", "celery", "-A", "tests.celery_application.app", "worker")
        path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
        environment = {
            "SHOP_BROKER": self.broker,
            "SHOP_RESULTS": self.results,
            "SHOP_RECORDS": f"{self.broker.rsplit('/', 1)[0]}/3",
            "PYTHONPATH": path,
            **more,
        }
        name = f"{os.urandom(4).hex()}@shop"
        options = ("--pool", "threads", "--concurrency", "8", "--loglevel", "info", "-n", name)
        return Program((*command, *options, *arguments), self._folder, environment)

    def task(self, name: str, *, wait: bool = True, **fields: object) -> CeleryTaskAction:
        return CeleryTaskAction(f"shop.{name}", BROKER, wait=wait, **fields)  # type: ignore[arg-type]

    def held(self) -> int:
        """How many messages its workers have taken and not acknowledged."""
        with RedisClient.from_url(self.broker) as broker:
            return int(broker.hlen("unacked"))

    def forget_results(self) -> None:
        with RedisClient.from_url(self.results) as results:
            results.flushdb()

    def forget_records(self) -> None:
        self.redis.delete(RECORDED)

    def recorded(self) -> list[str]:
        """The ids of the tasks that have run, one for each run."""
        found: list[str] = self.redis.lrange(RECORDED, 0, -1)  # type: ignore[assignment]
        return found


@contextmanager
def celery_application(redis: Redis) -> Iterator[CeleryApplication]:
    with tempfile.TemporaryDirectory(prefix="shop-") as folder:
        yield CeleryApplication(redis, Path(folder))
