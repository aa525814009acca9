"""The settings: their names, kinds, defaults and meanings, and which combinations are impossible.

The times at the top are constants: all processes must agree on them.
"""

import dataclasses
import ipaddress
import json
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from scheduler_app.config import parsers as parse
from scheduler_app.config.api_keys import ApiKey, read_key
from scheduler_app.config.parsers import DENIED_PORTS, LogFormat, LogLevel
from scheduler_app.domain.celery_task_action import (
    NamedUrls,
    TaskPattern,
    parse_brokers,
    parse_result_backends,
    parse_task_patterns,
)
from scheduler_app.domain.command_action import opening_patterns, parse_patterns
from scheduler_app.domain.errors import SchedulerError
from scheduler_app.domain.person import RoleLine, parse_roles
from scheduler_app.domain.retry import DEFAULT_MAX_RETRIES, MAX_RETRIES

#: A beat that died holds the schedules it was expanding for this long.
EXPAND_LEASE_SECONDS = 30
#: A dispatcher that died holds the events it was publishing for this long.
DISPATCH_LEASE_SECONDS = 2
#: Redis delivers a message again that no worker has acknowledged for this long.
VISIBILITY_TIMEOUT_SECONDS = 420


@dataclass(frozen=True, slots=True)
class BrokerTls:
    """The server's certificate is always verified, by authority and by name: kombu does neither for Redis,
    and not the second for RabbitMQ, unless it is told to."""

    ca_bundle: str = ""
    """A file of certificate authorities; empty: the system's."""
    client_certificate: str = ""
    """A PEM file with this side's certificate and its key; empty: none is shown."""

    def options(self, url: str) -> dict[str, Any] | None:
        """What kombu and redis-py take for the broker at `url`; None if it is spoken to without TLS."""
        scheme = url.partition(":")[0]
        if scheme == "amqps":
            # The name to verify is the transport's to add: it knows which of several hosts it connects to.
            return {"cert_reqs": ssl.CERT_REQUIRED, **self._files("")}
        if scheme == "rediss":
            return {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_check_hostname": True, **self._files("ssl_")}
        return None

    def _files(self, prefix: str) -> dict[str, str]:
        named = {"ca_certs": self.ca_bundle, "certfile": self.client_certificate}
        return {f"{prefix}{name}": path for name, path in named.items() if path}


#: The system's authorities, and no certificate of our own.
PLAIN_TLS = BrokerTls()


Value = TypeVar("Value")


class InvalidSetting(SchedulerError):
    """A setting is unusable. The message begins with its name and says what would be right."""


def _setting(
    default: Value,
    parser: Callable[[str], Value],
    about: str,
    *,
    secret: bool = False,
    list_text: Callable[[Sequence[str]], str] = parse.no_list,
) -> Value:
    """`parser` reads the setting's text, `about` documents it; a `secret` is left out of the repr.
    `list_text` makes a text for `parser` of a list in the configuration file."""
    metadata = {"parse": parser, "about": about, "list_text": list_text}
    return dataclasses.field(default=default, metadata=metadata, repr=not secret)


@dataclass(frozen=True)
class Settings:
    """Every setting; an attribute is the environment's name in lower case."""

    mongo_uri: str = _setting(
        "mongodb://localhost:27017",
        parse.mongo_uri,
        "MongoDB, a replica set (of one, if need be)",
        secret=True,
    )
    mongo_database: str = _setting("schedulerdb", parse.database_name, "the database's name")
    redis_host: str = _setting("localhost", str, "Redis, the broker")
    redis_port: int = _setting(6379, parse.whole_number(1, 65535), "its port")
    broker_url: str = _setting(
        "", parse.broker_url, "a whole broker URL instead of the Redis pair", secret=True
    )
    broker_sentinel_master: str = _setting(
        "mymaster", str, "the name under which Sentinel knows the master, for a sentinel:// BROKER_URL"
    )
    broker_ca_bundle: str = _setting(
        "",
        parse.readable_file,
        "a file of certificate authorities instead of the system's, for amqps:// and rediss:// URLs",
    )
    broker_client_certificate: str = _setting(
        "",
        parse.readable_file,
        "a PEM file with a certificate and its key, for a BROKER_URL or FLOW_CONTROL_URL that asks for one",
    )
    flow_control_url: str = _setting(
        "",
        parse.flow_control_url,
        "a Redis that counts what destinations with limits are sent; for an amqp:// BROKER_URL, else its own",
        secret=True,
    )
    prequeuer_ticker_interval_seconds: float = _setting(
        1.0, parse.seconds(0.1, 60), "the longest pause between two ticks of beat"
    )
    prequeuer_event_timeframe_minutes: int = _setting(
        10, parse.whole_number(1, 1440), "how far ahead occurrences become events"
    )
    dispatch_horizon_seconds: float = _setting(
        0.0, parse.seconds(0, 60), "how far ahead events become messages; 0 means max(5, ticker + 4)"
    )
    worker_count: int = _setting(
        0, parse.whole_number(0, 256), "workers that `scheduler up` starts; 0 means one a core"
    )
    worker_concurrency: int = _setting(
        16, parse.whole_number(1, 1000), "batches that a worker claims at once"
    )
    worker_max_events: int = _setting(
        10_000,
        parse.whole_number(100, 100_000),
        "events that a worker holds: waiting, in flight, not yet recorded",
    )
    worker_max_retries: int = _setting(
        DEFAULT_MAX_RETRIES, parse.whole_number(0, MAX_RETRIES), "retries of a schedule that names none"
    )
    worker_soft_shutdown_seconds: float = _setting(
        35.0, parse.seconds(0, 600), "how long a worker that was told to stop lets requests finish"
    )
    log_level: LogLevel = _setting(  # noqa: RUF009 - it makes a dataclasses.field
        "info", parse.log_level, "debug, info, warning, error or critical"
    )
    log_format: LogFormat = _setting(  # noqa: RUF009 - it makes a dataclasses.field
        "auto", parse.choice(parse.LOG_FORMATS), "auto is text on a terminal"
    )
    api_host: str = _setting("127.0.0.1", str, "the address the API listens on")
    api_port: int = _setting(8080, parse.whole_number(1, 65535), "its port")
    api_processes: int = _setting(2, parse.whole_number(1, 64), "processes that share that port")
    api_slow_client_seconds: float = _setting(
        10.0,
        parse.seconds(0.5, 300),
        "how long a request's header may take, and how long a body or an answer may stall",
    )
    api_keys: tuple[str, ...] = _setting(
        (),
        parse.api_keys,
        "keys of the API, or name:key, or name:key:read, separated by commas",
        secret=True,
        list_text=parse.comma_list,
    )
    trusted_proxies: str = _setting(
        "127.0.0.1,::1",
        parse.proxies,
        "proxies (CIDR, separated by commas; or none) that are believed who a client is, and that it came by"
        " https",
        list_text=parse.comma_list,
    )
    public_url: str = _setting(
        "", parse.public_url, "where browsers find the pages, as https://scheduler.example.com"
    )
    session_hours: float = _setting(
        12.0, parse.hours(0.1, 720), "how long a sign-in lasts, of people and with keys, in hours"
    )
    oidc_issuer: str = _setting(
        "",
        parse.issuer_url,
        "the OpenID provider by which people sign in, as https://login.example.com/realms/ops",
    )
    oidc_client_id: str = _setting("", str, "what that provider calls this scheduler")
    oidc_client_secret: str = _setting(
        "", str, "its secret for this scheduler; what it gives of people is stored sealed by it", secret=True
    )
    oidc_roles: str = _setting(
        "",
        parse.oidc_roles,
        "who may do what: claim=value=scopes@tenant, separated by commas, or a JSON list",
        list_text=json.dumps,
    )
    oidc_scopes: str = _setting(
        "openid profile email", parse.oidc_scopes, "what is asked of the provider about a person"
    )
    smtp_url: str = _setting(
        "",
        parse.smtp_url,
        "the mail server of notifications, as smtps://user:password@host?from=alerts@example.com",
        secret=True,
    )
    witness_ping_url: str = _setting(
        "",
        parse.receiver_url,
        "what the witness calls every minute while all is well: who is not called any more can ring",
        secret=True,
    )
    callback_allowed_networks: str = _setting(
        "",
        parse.networks,
        "private networks (CIDR, separated by commas) that callbacks may reach",
        list_text=parse.comma_list,
    )
    callback_denied_ports: str = _setting(
        DENIED_PORTS,
        parse.ports,
        "ports that callbacks must not call, separated by commas, ranges too; or none",
        list_text=parse.comma_list,
    )
    callback_origin_concurrency: int = _setting(
        200,
        parse.whole_number(1, 2000),
        "requests of a worker in flight to one origin (scheme, host and port)",
    )
    callback_ca_bundle: str = _setting("", str, "a file of certificate authorities instead of certifi's")
    tasks_api: bool = _setting(
        False,
        parse.switch,
        "whether the API serves /tasks, whose tasks run commands: true or false",
    )
    allowed_commands: tuple[str, ...] = _setting(
        (),
        parse_patterns,
        "patterns of the commands that may be run, separated by commas, or a JSON list; none by default",
        list_text=json.dumps,
    )
    allow_any_command: bool = _setting(
        False,
        parse.switch,
        "whether ALLOWED_COMMANDS may have patterns that allow any program, such as * and shell:*",
    )
    command_user: str = _setting(
        "",
        str,
        "the user as whom commands run, where their worker is root; the worker's own by default",
    )
    command_directory: str = _setting(
        "",
        str,
        "the directory in which commands run; the one in which the worker was started by default",
    )
    command_concurrency: int = _setting(
        20, parse.whole_number(1, 1000), "processes of one program that a worker runs at once"
    )
    command_memory_mib: int = _setting(
        2048, parse.whole_number(16, 2**20), "address space of each process of a command, in MiB"
    )
    command_cpu_seconds: int = _setting(
        600, parse.whole_number(1, 86_400), "CPU time of each process of a command"
    )
    command_open_files: int = _setting(
        1024, parse.whole_number(16, 2**20), "open files of each process of a command"
    )
    command_file_mib: int = _setting(
        1024, parse.whole_number(1, 2**20), "the largest file that a command may write, in MiB"
    )
    command_processes: int = _setting(
        0,
        parse.whole_number(0, 2**20),
        "processes and threads that the user of commands may have in all; 0: no limit; root has none",
    )
    command_niceness: int = _setting(
        10, parse.whole_number(0, 19), "how far commands give way to what else wants the CPU: 0 is not at all"
    )
    celery_brokers: NamedUrls = _setting(  # noqa: RUF009 - it makes a dataclasses.field
        (),
        parse_brokers,
        "brokers of other Celery applications that schedules may send tasks to: name=URL, by commas",
        secret=True,
        list_text=parse.comma_list,
    )
    celery_result_backends: NamedUrls = _setting(  # noqa: RUF009 - it makes a dataclasses.field
        (),
        parse_result_backends,
        "where those applications keep results (Redis), by the same names: needed to wait for tasks",
        secret=True,
        list_text=parse.comma_list,
    )
    celery_tasks: tuple[str, ...] = _setting(
        (),
        parse_task_patterns,
        "patterns of the tasks that those applications may be sent: broker:task or broker:task@queue, by"
        " commas",
        list_text=parse.comma_list,
    )
    retention_days: int = _setting(30, parse.whole_number(1, 3650), "how long finished events are kept")
    message_retention_days: int = _setting(
        30, parse.whole_number(1, 3650), "how long finished messages are kept, and their ids are known"
    )
    audit_retention_days: int = _setting(
        400, parse.whole_number(1, 3650), "how long the lines of the audit are kept"
    )
    max_messages: int = _setting(
        0,
        parse.whole_number(0, 10**9),
        "messages that a tenant may have scheduled for later; 0: as many as it likes",
    )
    secrets_key: str = _setting(
        "",
        str,
        "Fernet keys, newest first, separated by commas; stored secrets are encrypted",
        secret=True,
        list_text=parse.comma_list,
    )
    flower_port: int = _setting(
        5555,
        parse.whole_number(1, 65535),
        "Flower's under `scheduler up`; unless set, another one when that is taken",
    )
    metrics_port: int = _setting(
        0, parse.whole_number(0, 65535), "a process's own Prometheus port; 0 means none"
    )
    metrics_host: str = _setting(
        "127.0.0.1",
        str,
        "where that listens; it has no key: beyond loopback, the network must guard it",
    )
    #: The texts of the settings that were given anywhere, by their environment names; the others have their
    #: defaults.
    given: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    @property
    def timeframe_seconds(self) -> float:
        return self.prequeuer_event_timeframe_minutes * 60.0

    @property
    def horizon_seconds(self) -> float:
        """How far ahead events are dispatched: long enough that a tick that comes late loses no precision."""
        return self.dispatch_horizon_seconds or max(5.0, self.prequeuer_ticker_interval_seconds + 4)

    @property
    def keys(self) -> tuple[ApiKey, ...]:
        """The API's keys with their names and roles."""
        return tuple(map(read_key, self.api_keys))

    @property
    def needs_key(self) -> bool:
        """Whether the API opens for nobody without a key: one of API_KEYS, or a stored one."""
        return bool(self.api_keys or self.oidc_issuer) or not is_loopback(self.api_host)

    @property
    def roles(self) -> tuple[RoleLine, ...]:
        """The lines of OIDC_ROLES."""
        return parse_roles(self.oidc_roles)

    @property
    def trusted_networks(self) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
        """The networks of TRUSTED_PROXIES."""
        return tuple(
            ipaddress.ip_network(each.strip()) for each in self.trusted_proxies.split(",") if each.strip()
        )

    @property
    def broker(self) -> str:
        """The broker's URL."""
        return self.broker_url or f"redis://{self.redis_host}:{self.redis_port}/0"

    @property
    def broker_tls(self) -> BrokerTls:
        return BrokerTls(self.broker_ca_bundle, self.broker_client_certificate)

    @property
    def worker_processes(self) -> int:
        return self.worker_count or os.cpu_count() or 1


def names() -> dict[str, "dataclasses.Field[object]"]:
    """Returns the fields of `Settings` by their environment names."""
    return {f.name.upper(): f for f in dataclasses.fields(Settings) if f.name != "given"}


def refuse_impossible(settings: Settings) -> None:
    """Raises InvalidSetting for settings that are valid each by itself, but not together."""
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
    if settings.flow_control_url and not settings.broker.startswith(("amqp:", "amqps:")):
        raise InvalidSetting(
            "FLOW_CONTROL_URL must be empty unless BROKER_URL is a RabbitMQ's: what destinations are sent is"
            " counted in the broker's own Redis"
        )
    opening = opening_patterns(settings.allowed_commands)
    if opening and not settings.allow_any_command:
        raise InvalidSetting(
            f"ALLOWED_COMMANDS must not have {opening[0]!r}, which allows any program: name the programs, or"
            " set ALLOW_ANY_COMMAND=true as well"
        )
    _refuse_impossible_sign_in(settings)
    unknown = set(dict(settings.celery_result_backends)) - set(dict(settings.celery_brokers))
    if unknown:
        raise InvalidSetting(
            f"CELERY_RESULT_BACKENDS must have names of CELERY_BROKERS; {min(unknown)} is not one"
        )
    if settings.celery_brokers:
        _refuse_impossible_tasks(settings)


#: Which settings a sign-in with a provider takes, with what each is for.
_OF_SIGN_IN = {
    "oidc_issuer": "it says where people sign in",
    "oidc_client_id": "the provider gives it when this scheduler is registered there",
    "oidc_client_secret": "the provider gives it when this scheduler is registered there",
    "oidc_roles": "nobody gets anything that no line of it gives, as groups=ops=read+trigger",
    "public_url": "the provider sends browsers back to PUBLIC_URL/sign-in/callback",
}


def _refuse_impossible_sign_in(settings: Settings) -> None:
    own = [name for name in _OF_SIGN_IN if name.startswith("oidc_")]
    given = [name for name in own if getattr(settings, name)]
    if not given:
        return
    for name, why in _OF_SIGN_IN.items():
        if not getattr(settings, name):
            raise InvalidSetting(f"{name.upper()} must be set when {given[0].upper()} is: {why}")


def _refuse_impossible_tasks(settings: Settings) -> None:
    brokers = dict(settings.celery_brokers)
    if not settings.celery_tasks:
        name = min(brokers)
        raise InvalidSetting(
            f"CELERY_TASKS must say which tasks may be sent to CELERY_BROKERS, such as {name}:{name}.tasks.*;"
            f" {name}:*@* allows every task and queue of {name}"
        )
    for pattern in map(TaskPattern.parse, settings.celery_tasks):
        if pattern.broker not in brokers:
            raise InvalidSetting(
                f"CELERY_TASKS must have names of CELERY_BROKERS; {pattern.broker} is not one"
            )
        if pattern.queue is not None and pattern.queue.startswith(f"{settings.mongo_database}:"):
            raise InvalidSetting(f"CELERY_TASKS must not name a queue of this scheduler: {pattern.queue}")


def is_loopback(host: str) -> bool:
    """Whether `host` names this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
