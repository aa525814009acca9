"""Settings: typed, read once, refused at start with their own name when they are wrong.

A value is taken from the first place that has one: a flag, the environment, the configuration file
(`--config`, then `./config.yaml`, then `./config/config.yaml`), the default. In the file a setting stands
under its section: `PREQUEUER_TICKER_INTERVAL_SECONDS` is `prequeuer: {ticker_interval_seconds: …}`.
"""

import dataclasses
import ipaddress
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from scheduler_app.domain.errors import SchedulerError
from scheduler_app.domain.ports import DENIED, parse_ports
from scheduler_app.domain.retry import DEFAULT_MAX_RETRIES, MAX_RETRIES

CONFIG_FILES = ("config.yaml", "config/config.yaml")
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")

EXPAND_LEASE_SECONDS = 30
DISPATCH_LEASE_SECONDS = 2
VISIBILITY_TIMEOUT_SECONDS = 420
MAX_TIMEOUT_SECONDS = 300


class InvalidSetting(SchedulerError):
    """A setting is unusable. The message begins with its name and says what would be right."""


def _text(value: str) -> str:
    return value


def _whole(low: int, high: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            raise ValueError(f"must be a whole number from {low} to {high}, not {value!r}") from None
        if not low <= number <= high:
            raise ValueError(f"must be from {low} to {high}, not {number}")
        return number

    return parse


def _seconds(low: float, high: float) -> Callable[[str], float]:
    def parse(value: str) -> float:
        try:
            number = float(value)
        except ValueError:
            raise ValueError(f"must be a number of seconds from {low:g} to {high:g}, not {value!r}") from None
        if not low <= number <= high:
            raise ValueError(f"must be from {low:g} to {high:g} seconds, not {value}")
        return number

    return parse


def _level(value: str) -> str:
    level = {"warn": "warning", "fatal": "critical", "trace": "debug"}.get(value.lower(), value.lower())
    if level not in LOG_LEVELS:
        raise ValueError(f"must be one of {', '.join(LOG_LEVELS)}, not {value!r}")
    return level


def _choice(*options: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in options:
            raise ValueError(f"must be one of {', '.join(options)}, not {value!r}")
        return value

    return parse


def _keys(value: str) -> tuple[str, ...]:
    keys = tuple(key.strip() for key in value.split(",") if key.strip())
    if any(len(key) < 16 for key in keys):
        raise ValueError("each key must have at least 16 characters (openssl rand -hex 24 makes one)")
    return keys


def _networks(value: str) -> str:
    for item in filter(None, (part.strip() for part in value.split(","))):
        try:
            ipaddress.ip_network(item)
        except ValueError as error:
            raise ValueError(f"must be CIDR networks separated by commas: {error}") from None
    return value


def _ports(value: str) -> str:
    parse_ports(value)
    return value


def _mongo_uri(value: str) -> str:
    if not value.startswith(("mongodb://", "mongodb+srv://")):
        raise ValueError("must begin with mongodb:// or mongodb+srv://")
    return value


def _broker_url(value: str) -> str:
    for url in value.split(";"):  # Sentinels
        try:
            parts = urlsplit(url)
            parts.port  # noqa: B018
        except ValueError:  # it quotes what it takes for the port: the beginning of a password, most likely
            raise ValueError(
                "must have a number as its port; in a password write / as %2F, # as %23, ? as %3F, @ as %40"
            ) from None
        if {"userid", "password"} & parse_qs(parts.query).keys():
            raise ValueError(
                "must have its password in front of the host, as in redis://:password@host:6379/0"
            )
    return value


def _database(value: str) -> str:
    if not value or len(value) > 38 or set(value) & set('/\\. "$*<>:|?\0'):
        raise ValueError('must have 1 to 38 characters and none of / \\ . " $ * < > : | ?')
    return value


def _setting(default: Any, parse: Callable[[str], Any], about: str, *, secret: bool = False) -> Any:
    return dataclasses.field(
        default=default, metadata={"parse": parse, "about": about, "secret": secret}, repr=not secret
    )


@dataclass(frozen=True)
class Settings:
    """Every setting; an attribute is the environment's name in lower case."""

    mongo_uri: str = _setting(
        "mongodb://localhost:27017", _mongo_uri, "MongoDB, a replica set (of one, if need be)", secret=True
    )
    mongo_database: str = _setting("schedulerdb", _database, "the database's name")
    redis_host: str = _setting("localhost", _text, "Redis, the broker")
    redis_port: int = _setting(6379, _whole(1, 65535), "its port")
    broker_url: str = _setting("", _broker_url, "a whole broker URL instead of the Redis pair", secret=True)
    broker_sentinel_master: str = _setting(
        "mymaster", _text, "the name under which Sentinel knows the master, for a sentinel:// BROKER_URL"
    )
    prequeuer_ticker_interval_seconds: float = _setting(
        1.0, _seconds(0.1, 60), "the longest pause between two ticks of beat"
    )
    prequeuer_event_timeframe_minutes: int = _setting(
        10, _whole(1, 1440), "how far ahead occurrences become events"
    )
    dispatch_horizon_seconds: float = _setting(
        0.0, _seconds(0, 60), "how far ahead events become messages; 0 means max(5, ticker + 4)"
    )
    worker_count: int = _setting(0, _whole(0, 256), "workers that `scheduler up` starts; 0 means one a core")
    worker_concurrency: int = _setting(16, _whole(1, 1000), "batches that a worker claims at once")
    worker_max_events: int = _setting(
        10_000, _whole(100, 100_000), "events that a worker holds: waiting, in flight, not yet recorded"
    )
    worker_max_retries: int = _setting(
        DEFAULT_MAX_RETRIES, _whole(0, MAX_RETRIES), "retries of a schedule that names none"
    )
    worker_soft_shutdown_seconds: float = _setting(
        35.0, _seconds(0, 600), "how long a worker that was told to stop lets requests finish"
    )
    log_level: str = _setting("info", _level, "debug, info, warning, error or critical")
    log_format: str = _setting("auto", _choice("auto", "json", "text"), "auto is text on a terminal")
    api_host: str = _setting("127.0.0.1", _text, "the address the API listens on")
    api_port: int = _setting(8080, _whole(1, 65535), "its port")
    api_processes: int = _setting(2, _whole(1, 64), "processes that share that port")
    api_slow_client_seconds: float = _setting(
        10.0,
        _seconds(0.5, 300),
        "how long a request's header may take, and how long a body or an answer may stall",
    )
    api_keys: tuple[str, ...] = _setting((), _keys, "keys of the API, separated by commas", secret=True)
    callback_allowed_networks: str = _setting(
        "", _networks, "private networks (CIDR, separated by commas) that callbacks may reach"
    )
    callback_denied_ports: str = _setting(
        DENIED, _ports, "ports that callbacks must not call, separated by commas, ranges too; or none"
    )
    callback_origin_concurrency: int = _setting(
        200, _whole(1, 2000), "requests of a worker in flight to one origin (scheme, host and port)"
    )
    callback_ca_bundle: str = _setting("", _text, "a file of certificate authorities instead of certifi's")
    retention_days: int = _setting(30, _whole(1, 3650), "how long finished events are kept")
    secrets_key: str = _setting(
        "", _text, "Fernet keys, newest first, separated by commas; stored secrets are encrypted", secret=True
    )
    flower_port: int = _setting(
        5555, _whole(1, 65535), "Flower's under `scheduler up`; unless set, another one when that is taken"
    )
    metrics_port: int = _setting(0, _whole(0, 65535), "a process's own Prometheus port; 0 means none")
    metrics_host: str = _setting(
        "127.0.0.1", _text, "where that listens; it has no key: beyond loopback, the network must guard it"
    )
    given: frozenset[str] = dataclasses.field(default=frozenset(), repr=False)

    @property
    def timeframe_seconds(self) -> float:
        return self.prequeuer_event_timeframe_minutes * 60.0

    @property
    def horizon_seconds(self) -> float:
        """How far ahead events are dispatched: long enough that a tick that comes late loses no precision."""
        return self.dispatch_horizon_seconds or max(5.0, self.prequeuer_ticker_interval_seconds + 4)

    @property
    def broker(self) -> str:
        """The broker's URL."""
        return self.broker_url or f"redis://{self.redis_host}:{self.redis_port}/0"

    @property
    def worker_processes(self) -> int:
        return self.worker_count or os.cpu_count() or 1


def names() -> dict[str, "dataclasses.Field[Any]"]:
    """The settings by their environment names."""
    return {f.name.upper(): f for f in dataclasses.fields(Settings) if f.name != "given"}


def load_settings(
    config_file: str | None = None,
    overrides: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Reads the settings; `overrides` (flags) carry the environment's names. Raises InvalidSetting."""
    known = names()
    environ = os.environ if environ is None else environ
    raw = _read_file(config_file, known)
    raw |= {name: environ[name] for name in known if environ.get(name, "") != ""}
    for name, value in (overrides or {}).items():
        if name not in known:
            raise InvalidSetting(f"{name} is not a setting")
        raw[name] = value
    values: dict[str, Any] = {}
    for name, text in raw.items():
        try:
            values[known[name].name] = known[name].metadata["parse"](text)
        except ValueError as error:
            raise InvalidSetting(f"{name} {error}") from None
    settings = Settings(**values, given=frozenset(raw))
    _refuse_impossible(settings)
    return settings


def _read_file(config_file: str | None, known: Mapping[str, Any]) -> dict[str, str]:
    path = (
        Path(config_file) if config_file else next((p for p in map(Path, CONFIG_FILES) if p.is_file()), None)
    )
    if path is None:
        return {}
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise InvalidSetting(f"{path}: cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"{path}: is not YAML: {_yaml_error(error)}") from None
    if not isinstance(content, dict) or not all(isinstance(part, dict) for part in content.values()):
        raise InvalidSetting(f"{path}: must have sections with settings, as in mongo: {{uri: …}}")
    found = {}
    for section, part in content.items():
        for key, value in part.items():
            name = f"{section}_{key}".upper()
            if name not in known:
                raise InvalidSetting(f"{path}: {section}.{key} is not a setting")
            found[name] = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return found


def _yaml_error(error: Exception) -> str:
    """What is wrong and where, without the line itself: a setting there may be a secret."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{error.problem} in line {mark.line + 1}, column {mark.column + 1}"
    return "it holds characters that text does not have"


def _refuse_impossible(settings: Settings) -> None:
    ticker, horizon = settings.prequeuer_ticker_interval_seconds, settings.horizon_seconds
    if horizon < ticker + 2:
        raise InvalidSetting(
            f"DISPATCH_HORIZON_SECONDS must be at least PREQUEUER_TICKER_INTERVAL_SECONDS + 2"
            f" ({ticker + 2:g}), not {horizon:g}: what is due between two ticks would be late"
        )
    if horizon > settings.timeframe_seconds / 2:
        raise InvalidSetting(
            "DISPATCH_HORIZON_SECONDS must not exceed half of PREQUEUER_EVENT_TIMEFRAME_MINUTES:"
            " an event must exist before it can be dispatched"
        )
    if not settings.api_keys and not is_loopback(settings.api_host):
        raise InvalidSetting(
            f"API_KEYS must be set when API_HOST is {settings.api_host}: without a key the API listens on"
            " loopback only"
        )


def is_loopback(host: str) -> bool:
    """Whether `host` names this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
