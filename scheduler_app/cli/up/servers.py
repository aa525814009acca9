"""The MongoDB and the broker of a run: those that the settings name, or embedded ones."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scheduler_app.cli.up.generated_secrets import secrets_keys
from scheduler_app.cli.up.preflight import check_broker, check_mongo, check_port, without_password
from scheduler_app.config import Settings
from scheduler_app.embedded import Mongod, Redis, Server


@dataclass(frozen=True)
class Backing:
    """`servers` are to be run by us; `environment` tells the parts where everything is, passwords too."""

    servers: tuple[Server, ...]
    environment: Mapping[str, str] = field(repr=False)
    #: As they may be shown, without passwords.
    mongo: str
    broker: str


def backing(settings: Settings, folder: Path) -> Backing:
    """Checks those that are named, and prepares the others in `folder`. Raises `CannotStart`.

    The others get new passwords each time: whoever learns one, by listening on a dead server's port, knows
    nothing of the next run. What is stored in our own MongoDB is sealed by a key in `folder`; a named MongoDB
    may have other processes, which would lack that key.
    """
    servers: list[Server] = []
    environment: dict[str, str] = {}
    uri, broker = settings.mongo_uri, settings.broker
    if _mongo_is_named(settings):
        check_mongo(uri)
    else:
        mongod = Mongod(folder / "mongod", password=secrets.token_urlsafe(32))
        servers.append(mongod)
        uri = environment["MONGO_URI"] = mongod.uri
        environment["SECRETS_KEY"] = secrets_keys(folder, settings.secrets_key)
    if _broker_is_named(settings):
        setting = "BROKER_URL" if settings.broker_url else "REDIS_HOST"
        check_broker(setting, broker, settings.broker_sentinel_master)
    else:
        redis = Redis(folder / "redis", _given_redis_port(settings), password=secrets.token_urlsafe(32))
        servers.append(redis)
        broker = environment["BROKER_URL"] = redis.url
    return Backing(tuple(servers), environment, without_password(uri), without_password(broker))


def _mongo_is_named(settings: Settings) -> bool:
    return "MONGO_URI" in settings.given


def _broker_is_named(settings: Settings) -> bool:
    return not settings.given.isdisjoint({"REDIS_HOST", "BROKER_URL"})


def _given_redis_port(settings: Settings) -> int | None:
    """A port without a host is one for our own Redis."""
    if "REDIS_PORT" not in settings.given:
        return None
    check_port("REDIS_PORT", "127.0.0.1", settings.redis_port, "choose another, or set REDIS_HOST to use it")
    return settings.redis_port
