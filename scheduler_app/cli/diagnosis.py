"""All that `scheduler doctor` looks at, in the order in which things depend on each other."""

from collections.abc import Mapping
from typing import Any

import requests
from kombu.connection import Connection
from kombu.exceptions import ChannelError

from scheduler_app.celery_app.settings import QUEUE, celery_settings
from scheduler_app.cli.preflight import without_password
from scheduler_app.clock import WARN_OFFSET_SECONDS, Clock
from scheduler_app.config import Settings, is_redis
from scheduler_app.dispatch import MESSAGES_IN_QUEUE
from scheduler_app.readiness import Check, check_fleet
from scheduler_app.readiness.check import fine, note, unknown, wrong
from scheduler_app.readiness.keys import check_keys
from scheduler_app.readiness.mongodb import check_mongodb
from scheduler_app.readiness.redis import check_queue, check_redis
from scheduler_app.store import STORE_FAULTS, Store

PATIENCE_SECONDS = 3.0


def diagnose(settings: Settings, flower_url: str) -> list[Check]:
    """Takes about 10 s when nothing answers. Raises InvalidField for an unusable SECRETS_KEY."""
    store = Store(settings)
    try:
        address = without_password(settings.mongo_uri)
        mongodb = check_mongodb(store, address, retention_days=settings.retention_days)
        # Not asked again when it has just not answered: each time that takes 5 s.
        processes = _processes(store) if mongodb[0].ok else _unknown_processes()
        return [
            *mongodb,
            *_broker(settings),
            *processes,
            *check_keys(settings),
            _flower(flower_url),
        ]
    finally:
        store.close()


def _processes(store: Store) -> list[Check]:
    try:
        nodes = store.nodes.alive()
        offset = Clock().synchronize(store.mongo.server_time)
    except STORE_FAULTS:
        return _unknown_processes()
    return [*check_fleet(nodes), _own_clock(offset)]


def _unknown_processes() -> list[Check]:
    return [*check_fleet(None), unknown("this clock", "MongoDB does not answer")]


def _own_clock(offset: float) -> Check:
    found = f"this host is {abs(offset):.3f} s off mongod's clock"
    if abs(offset) > WARN_OFFSET_SECONDS:
        return wrong("this clock", found, "set it by NTP", offset_seconds=offset)
    return fine("this clock", found, offset_seconds=offset)


def _broker(settings: Settings) -> list[Check]:
    address = without_password(settings.broker)
    redis = is_redis(settings.broker)
    name = "redis" if redis else "broker"
    options = celery_settings(settings)["broker_transport_options"] | {
        "socket_connect_timeout": PATIENCE_SECONDS,
        "socket_timeout": PATIENCE_SECONDS,
        "max_retries": 1,
    }
    try:
        with Connection(  # type: ignore[no-untyped-call]
            settings.broker, connect_timeout=PATIENCE_SECONDS, transport_options=options if redis else {}
        ) as connection:
            channel = connection.channel()
            if not redis:
                return [fine("broker", f"answers at {address}"), _queue(_length(channel))]
            info: Mapping[str, Any] = channel.client.info()
            return [*check_redis(info, address), _queue(sum(channel.sizes(QUEUE).values()))]
    except Exception as error:  # each transport has errors of its own
        reason = " ".join(str(error).split()) or type(error).__name__
        remedy = "start it, or see that REDIS_HOST and REDIS_PORT, or BROKER_URL, are right"
        return [
            wrong(name, f"{address} does not answer: {without_password(reason)}", remedy),
            unknown("queue", "the broker does not answer"),
        ]


def _queue(length: int) -> Check:
    return check_queue(length, most=MESSAGES_IN_QUEUE)


def _length(channel: Any) -> int:
    try:
        return int(channel.queue_declare(QUEUE, passive=True).message_count)
    except ChannelError:
        return 0  # before the first worker or the first message there is no queue


def _flower(url: str) -> Check:
    try:
        requests.get(f"{url}/healthcheck", timeout=PATIENCE_SECONDS).raise_for_status()
    except requests.RequestException:
        return note("flower", f"not found at {url}", "nothing needs it; celery -A scheduler_app flower")
    return fine("flower", f"answers at {url}")
