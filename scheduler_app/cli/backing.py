"""The MongoDB and the broker of a run: those that the settings name, or embedded ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scheduler_app.cli.preflight import check_broker, check_mongo, check_port, without_password
from scheduler_app.config import Settings
from scheduler_app.embedded import Mongod, Redis, Server


@dataclass(frozen=True)
class Backing:
    """`servers` are to be run by us; `environment` tells the parts where everything is."""

    servers: tuple[Server, ...]
    environment: Mapping[str, str]
    #: As they may be shown, without passwords.
    mongo: str
    broker: str


def is_all_named(settings: Settings) -> bool:
    """Whether nothing is to be embedded."""
    return _mongo_is_named(settings) and _broker_is_named(settings)


def backing(settings: Settings, folder: Path) -> Backing:
    """Checks those that are named, and prepares the others in `folder`. Raises `CannotStart`."""
    servers: list[Server] = []
    environment: dict[str, str] = {}
    uri, broker = settings.mongo_uri, settings.broker
    if _mongo_is_named(settings):
        check_mongo(uri)
    else:
        mongod = Mongod(folder / "mongod")
        servers.append(mongod)
        uri = environment["MONGO_URI"] = mongod.uri
    if _broker_is_named(settings):
        setting = "BROKER_URL" if settings.broker_url else "REDIS_HOST"
        check_broker(setting, broker, settings.broker_sentinel_master)
    else:
        redis = Redis(folder / "redis", _given_redis_port(settings))
        servers.append(redis)
        broker = redis.url
        environment |= {"REDIS_HOST": "127.0.0.1", "REDIS_PORT": str(redis.port)}
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
