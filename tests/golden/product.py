"""The product as these tests run it: the real application over a real mongod and Redis, with a clock that
stands still, and a beat and a worker that work when they are told to.

This module alone names parts of the product. Who moves them changes this module, and no golden file.
"""

import base64
import json
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, Final, cast
from urllib.parse import urlsplit

import amqp
import pytest
from flask import Flask
from flask.testing import FlaskClient
from pymongo import MongoClient
from redis import Redis as RedisClient
from werkzeug.serving import make_server

from scheduler_app.api import factory, request_limits
from scheduler_app.api.factory import routed, serve
from scheduler_app.beat import scheduler
from scheduler_app.beat.duties import duties
from scheduler_app.beat.scheduler import Tick
from scheduler_app.broker.rabbitmq.transport import LANES, QUORUM, lane_queue, name_prefix
from scheduler_app.cli import main as main
from scheduler_app.clock import clock
from scheduler_app.config import Settings as Settings
from scheduler_app.domain.ids import partition_of as partition_of
from scheduler_app.domain.retry import RetryPolicy
from scheduler_app.embedded import Mongod as Mongod
from scheduler_app.embedded import RabbitMQ as RabbitMQ
from scheduler_app.embedded import Redis as Redis
from scheduler_app.usecases import stops
from scheduler_app.usecases.duties import dispatch
from scheduler_app.worker import pipeline, reports
from scheduler_app.worker.attempt import Attempt
from tests.processes import PATIENCE_SECONDS

#: A Monday. Nothing that mongod's own clock gives lies near it.
BEGIN: Final = datetime(2040, 3, 5, 12, tzinfo=UTC)
ADMIN: Final = "admin-" + "a" * 40
READER: Final = "reader-" + "r" * 40
#: A Fernet key: 32 bytes, in URL-safe base64.
SECRETS_KEY: Final = base64.urlsafe_b64encode(b"thirty-two bytes of a golden key").decode()

_LIMITS: Final = (
    *((request_limits, name) for name in ("GET_SECONDS", "CHANGE_SECONDS", "MUCH_SECONDS")),
    (factory, "BROKER_SECONDS"),
    (stops, "ANSWER_SECONDS"),
    (dispatch, "SELECTION_SECONDS"),
    (reports, "LAST_SECONDS"),
    (pipeline, "END_SECONDS"),
)


class Time:
    """The product's clock, which stands still until it is put forward."""

    def __init__(self) -> None:
        self.at = BEGIN

    def __call__(self) -> datetime:
        return self.at

    def pass_by(self, **length: float) -> None:
        """`length` as a timedelta takes it."""
        self.at += timedelta(**length)


class Product:
    """An API, a beat and a worker over one database."""

    def __init__(self, settings: Settings, time: Time) -> None:
        self.settings, self.time = settings, time
        self.app: Flask = routed(settings)
        self.made = serve(self.app, settings)
        self.made.store.prepare()
        self.client: FlaskClient = self.app.test_client()
        self.database = MongoClient[dict[str, Any]](settings.mongo_uri, tz_aware=True)[
            settings.mongo_database
        ]
        self.redis = RedisClient.from_url(settings.flow_control_url or settings.broker_url)

    def beat(self, *names: str) -> Tick:
        """A beat with all duties or those of these names; `run` is one tick of it."""
        chosen = [duty for duty in duties(self.made) if not names or duty.name in names]
        return Tick(chosen, now=self.time, stopping=lambda: False, unavailable=self.made.faults)

    def tick(self) -> None:
        """One tick of a beat, with all of its duties."""
        self.beat().run()

    def messages(self) -> list[dict[str, Any]]:
        """Takes what lies in the queues of the broker, the first to be taken first; `queue` is the list in
        Redis in which each lay."""
        return _taken(self.redis, f"{self.settings.mongo_database}:*")

    def messages_in_rabbitmq(self, server: RabbitMQ) -> list[dict[str, Any]]:
        """Takes what lies in the queues of a RabbitMQ, which has no messages but these."""
        found = []
        password = urlsplit(self.settings.broker_url).password
        with amqp.Connection(f"127.0.0.1:{server.port}", "scheduler", password) as connection:
            channel = connection.channel()
            prefix = name_prefix(self.settings.mongo_database)
            for queue, lane in product(("callbacks", "commands", "special"), LANES):
                name = lane_queue(prefix, queue, lane)
                channel.queue_declare(name, durable=True, auto_delete=False, arguments=QUORUM)
                while (message := channel.basic_get(name, no_ack=True)) is not None:
                    found.append(
                        {"queue": name, "properties": message.properties, "body": json.loads(message.body)}
                    )
        return found

    def foreign_messages(self) -> list[dict[str, Any]]:
        """Takes what lies in the broker of the other Celery application."""
        with closing(RedisClient.from_url(dict(self.settings.celery_brokers)["shop"])) as redis:
            return _taken(redis, "*")

    def deliver(self) -> list[dict[str, Any]]:
        """Lets workers take all messages, and waits until they have recorded what came of them. Returns the
        messages."""
        messages = self.messages()
        by_queue = defaultdict(list)
        for message in messages:
            by_queue[message["properties"]["delivery_info"]["routing_key"]].append(readable(message)["body"])
        for queue, bodies in by_queue.items():
            pipeline = self.made.pipeline("worker", queues=(queue,))
            pipeline.start()
            for _, keywords, _ in bodies:
                pipeline.delivery.deliver(keywords["ids"])
            assert pipeline.wait_until_empty(PATIENCE_SECONDS), "the worker does not come to an end"
            pipeline.stop_starting()
            pipeline.interrupt()
            pipeline.stop()
        return messages

    def documents(self) -> dict[str, list[dict[str, Any]]]:
        """All documents of all collections that have some, but for figures, which tell real durations."""
        names = self.database.list_collection_names(filter={"type": "collection"})
        found = {
            name: list(self.database[name].find())
            for name in sorted(names)
            if not name.startswith("system.") and name != "figures"
        }
        return {name: documents for name, documents in found.items() if documents}

    @contextmanager
    def listening(self) -> Iterator[str]:
        """The address at which the application answers, for the commands."""
        server = make_server("127.0.0.1", 0, self.app, threaded=True)
        thread = threading.Thread(target=server.serve_forever, name="api", daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
        server.server_close()

    def close(self) -> None:
        self.made.store.close()
        self.redis.close()
        self.database.client.drop_database(self.database.name)
        self.database.client.close()


@contextmanager
def held_time() -> Iterator[Time]:
    """The product's clock stands still, attempts take no time, and retries wait for the longest delay that
    may be drawn."""
    record = Attempt.record
    time = Time()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "now", time)
        # What a process gives up after a moment is not given up here because this machine stands still, and
        # what it looks up once in a while it looks up each time.
        for module, name in _LIMITS:
            patch.setattr(module, name, PATIENCE_SECONDS)
        # Reports are written once, when the worker ends: what a turn sees depends on when it comes.
        patch.setattr(reports, "TURN_SECONDS", PATIENCE_SECONDS)
        patch.setattr(scheduler, "monotonic", lambda: 0.0)
        patch.setattr(stops.Polled, "is_old", property(lambda polled: True))
        patch.setitem(RetryPolicy.delay.__kwdefaults__ or {}, "draw", lambda: 1.0)
        patch.setattr(
            Attempt,
            "record",
            lambda attempt, verdict, *more, **named: record(
                attempt, verdict._replace(duration_ms=0.0), *more, **named
            ),
        )
        yield time


def _taken(redis: RedisClient, keys: str) -> list[dict[str, Any]]:
    found = []
    for key in sorted(redis.scan_iter(keys, _type="list")):
        while (raw := redis.rpop(key)) is not None:
            found.append({"queue": key.decode(), **json.loads(cast("bytes", raw))})
    return found


def readable(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as it lies in Redis, with its body decoded."""
    body = message["body"]
    if message.get("properties", {}).get("body_encoding") == "base64":
        body = json.loads(base64.b64decode(body))
    return {**message, "body": body}
