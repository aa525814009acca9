"""The MongoDB and the broker of a run: those that the settings name, or embedded ones."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scheduler_app.cli.click_extensions import CannotStart
from scheduler_app.cli.up.data_directory import secrets_keys
from scheduler_app.cli.up.preflight import check_broker, check_mongo, check_port
from scheduler_app.config import Settings
from scheduler_app.embedded import Mongod, NoBinary, RabbitMQ, Redis, Server, find_rabbitmq_server
from scheduler_app.health.check import without_passwords


@dataclass(frozen=True)
class Servers:
    """`embedded` are the servers that this run has to start. `environment` tells the services where MongoDB
    and the broker are; it holds passwords. `mongo` and `broker` are their URLs without passwords, and
    `broker_title` is what people call the broker."""

    embedded: tuple[Server, ...]
    environment: Mapping[str, str] = field(repr=False)
    mongo: str
    broker: str
    broker_title: str


def prepare_servers(settings: Settings, folder: Path, kind: str = "redis") -> Servers:
    """Checks the servers that are named, and prepares embedded ones in `folder` for the others; `kind` is
    that of the embedded broker, redis or rabbitmq. Raises `CannotStart`.

    Embedded servers get new passwords at each start: a password that leaks, to a program that listens on a
    dead server's port, is worth nothing in the next run. A key in `folder` encrypts the secrets that are
    stored in an embedded MongoDB, but not those in a named one: processes elsewhere that use the same
    MongoDB would lack that key.
    """
    embedded: list[Server] = []
    environment: dict[str, str] = {}
    uri, broker = settings.mongo_uri, settings.broker
    if _mongo_is_named(settings):
        check_mongo(uri)
    else:
        mongod = Mongod(folder / "mongod", password=secrets.token_urlsafe(32))
        embedded.append(mongod)
        uri = environment["MONGO_URI"] = mongod.uri
        environment["SECRETS_KEY"] = secrets_keys(folder, settings.secrets_key)
    if _broker_is_named(settings):
        setting = "BROKER_URL" if settings.broker_url else "REDIS_HOST"
        title = check_broker(setting, settings)
    elif kind == "rabbitmq":
        rabbitmq = _rabbitmq(folder)
        embedded.append(rabbitmq)
        title = rabbitmq.title
        broker = environment["BROKER_URL"] = rabbitmq.url
    else:
        redis = Redis(folder / "redis", _given_redis_port(settings), password=secrets.token_urlsafe(32))
        embedded.append(redis)
        title = redis.title
        broker = environment["BROKER_URL"] = redis.url
    return Servers(tuple(embedded), environment, without_passwords(uri), without_passwords(broker), title)


def _rabbitmq(folder: Path) -> RabbitMQ:
    try:
        find_rabbitmq_server()
    except NoBinary as error:
        raise CannotStart(f"--broker: {error}") from None
    return RabbitMQ(folder / "rabbitmq", password=secrets.token_urlsafe(32))


def _mongo_is_named(settings: Settings) -> bool:
    return "MONGO_URI" in settings.given


def _broker_is_named(settings: Settings) -> bool:
    return "REDIS_HOST" in settings.given or "BROKER_URL" in settings.given


def _given_redis_port(settings: Settings) -> int | None:
    """REDIS_PORT without REDIS_HOST is the port of the embedded Redis."""
    if "REDIS_PORT" not in settings.given:
        return None
    check_port("REDIS_PORT", "127.0.0.1", settings.redis_port, "choose another, or set REDIS_HOST to use it")
    return settings.redis_port
