"""What each kind of setting allows: functions that turn its text into its value.

Each raises ValueError with a text that completes a sentence beginning with the setting's name. Denied
ports are those at which no receiver of HTTP listens, and where a request could be taken for something
else.
"""

import ipaddress
import os
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar, get_args
from urllib.parse import parse_qs, urlsplit

from scheduler_app.config.api_keys import read_key
from scheduler_app.domain.action import UNKNOWN_ORIGIN, origin_of
from scheduler_app.domain.mail_server import MailServer
from scheduler_app.domain.person import parse_roles

NO_PORTS = "none"

#: WHATWG Fetch, "port blocking", as browsers have it, but for port 9, which discards whatever it is sent; and
#: databases, brokers, directories, remote desktops, which it leaves out. What speaks HTTP is not among them,
#: however internal: that is for CALLBACK_ALLOWED_NETWORKS to judge.
DENIED_PORTS = (
    # WHATWG Fetch
    "1,7,11,13,15,17,19-23,25,37,42,43,53,69,77,79,87,95,101-104,109-111,113,115,117,119,123,135,137,139,143,"
    "161,179,389,427,465,512-515,526,530-532,540,548,554,556,563,587,601,636,989,990,993,995,1719,1720,1723,"
    "2049,3659,4045,4190,5060,5061,6000,6566,6665-6669,6679,6697,10080,"
    # SMB; SQL Server; Oracle; ZooKeeper; MySQL; LDAP's global catalog; RDP; Erlang's epmd
    "445,1433,1521,2181,3306,3268,3269,3389,4369,"
    # PostgreSQL; AMQP; VNC; Redis, its cluster bus and Sentinel; Cassandra; Kafka; memcached; MongoDB
    "5432,5671,5672,5900,6379,16379,26379,9042,9092,11211,27017-27019"
)


def parse_ports(text: str) -> frozenset[int]:
    """The ports in "22,25,6665-6669"; "none" gives none. Raises ValueError, which says what is wrong."""
    if text.strip().lower() == NO_PORTS:
        return frozenset()
    ports: set[int] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = part.partition("-")
        low, high = _port(first), _port(last if dash else first)
        if low > high:
            raise ValueError(f"must have the lower port first, not {part!r}")
        ports.update(range(low, high + 1))
    return frozenset(ports)


def _port(text: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 5 and 1 <= int(digits) <= 65535):
        raise ValueError(
            f"must be ports from 1 to 65535 and ranges of them separated by commas, as in 25,6000-6063, or"
            f" {NO_PORTS}; not {text[:32]!r}"
        )
    return int(digits)


LogLevel = Literal["debug", "info", "warning", "error", "critical"]
LogFormat = Literal["auto", "json", "text"]
LOG_FORMATS: tuple[LogFormat, ...] = get_args(LogFormat)
_LOG_LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)
_LEVEL_SYNONYMS = {"warn": "warning", "fatal": "critical", "trace": "debug"}

Choice = TypeVar("Choice", bound=str)
Number = TypeVar("Number", int, float)


def whole_number(low: int, high: int) -> Callable[[str], int]:
    return _number(int, "a whole number", low, high)


def seconds(low: float, high: float) -> Callable[[str], float]:
    return _number(float, "a number of seconds", low, high)


def hours(low: float, high: float) -> Callable[[str], float]:
    return _number(float, "a number of hours", low, high)


def _number(
    convert: Callable[[str], Number], kind: str, low: Number, high: Number
) -> Callable[[str], Number]:
    def parse(value: str) -> Number:
        refusal = f"must be {kind} from {low} to {high}, not {value!r}"
        try:
            number = convert(value)
        except ValueError:
            raise ValueError(refusal) from None
        if not low <= number <= high:
            raise ValueError(refusal)
        return number

    return parse


def log_level(value: str) -> LogLevel:
    return choice(_LOG_LEVELS)(_LEVEL_SYNONYMS.get(value.lower(), value.lower()))


def choice(options: Sequence[Choice]) -> Callable[[str], Choice]:
    def parse(value: str) -> Choice:
        for option in options:
            if value == option:
                return option
        raise ValueError(f"must be one of {', '.join(options)}, not {value!r}")

    return parse


def switch(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError(f"must be true or false, not {value!r}")
    return value.lower() == "true"


def no_list(items: Sequence[str]) -> str:
    """Refuses a list for a setting that is one text."""
    raise ValueError(f"must be one text, not a list of {len(items)}")


def comma_list(items: Sequence[str]) -> str:
    """Returns the text of a list whose setting is separated by commas."""
    if any("," in item for item in items):
        raise ValueError("must have no comma in an item of its list: commas separate the items")
    return ",".join(items)


def api_keys(value: str) -> tuple[str, ...]:
    keys = tuple(key.strip() for key in value.split(",") if key.strip())
    known = [read_key(entry).name for entry in keys]
    if twice := sorted({name for name in known if name and known.count(name) > 1}):
        raise ValueError(f"two keys have the name {twice[0]}: their edits could not be told apart")
    return keys


def networks(value: str) -> str:
    for item in filter(None, (part.strip() for part in value.split(","))):
        try:
            ipaddress.ip_network(item)
        except ValueError as error:
            raise ValueError(f"must be CIDR networks separated by commas: {error}") from None
    return value


def proxies(value: str) -> str:
    """Networks, or `none`, which is empty: a setting that is given as nothing has its default."""
    return "" if value.strip().lower() == "none" else networks(value)


def public_url(value: str) -> str:
    parts = urlsplit(value.lower())
    url = f"{parts.scheme}://{parts.netloc}"
    if value and (
        parts.scheme not in ("http", "https") or not parts.hostname or value.lower().rstrip("/") != url
    ):
        raise ValueError(
            "must be an http:// or https:// URL without a path, as https://scheduler.example.com"
        )
    return url if value else ""


def issuer_url(value: str) -> str:
    parts = urlsplit(value)
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    safe = parts.scheme == "https" or (parts.scheme == "http" and local)
    if value and (not safe or not parts.hostname or parts.query or parts.fragment or parts.username):
        raise ValueError(
            "must be the https:// URL by which the provider calls itself, as https://login.example.com/realms/ops"
        )
    return value


def oidc_scopes(value: str) -> str:
    words = value.split()
    if words and "openid" not in words:
        raise ValueError(
            f"must have openid among its scopes, as in openid profile email; not {value[:100]!r}"
        )
    return " ".join(words)


def oidc_roles(value: str) -> str:
    parse_roles(value)  # raises ValueError, which says what is wrong
    return value


def receiver_url(value: str) -> str:
    if value and origin_of(value) == UNKNOWN_ORIGIN:
        raise ValueError("must be an http:// or https:// URL, as https://hc.example.com/ping/abc")
    return value


def smtp_url(value: str) -> str:
    if value:
        MailServer.parse(value)
    return value


def ports(value: str) -> str:
    parse_ports(value)  # raises ValueError, which says what is wrong
    return value


def mongo_uri(value: str) -> str:
    if not value.startswith(("mongodb://", "mongodb+srv://")):
        raise ValueError("must begin with mongodb:// or mongodb+srv://")
    return value


def broker_url(value: str) -> str:
    for url in value.split(";"):  # Sentinels
        try:
            parts = urlsplit(url)
            parts.port  # noqa: B018
        except ValueError:  # its text quotes the "port", which probably is the beginning of a password
            raise ValueError(
                "must have a number as its port; in a password write / as %2F, # as %23, ? as %3F, @ as %40"
            ) from None
        if {"userid", "password"} & parse_qs(parts.query).keys():
            raise ValueError(
                "must have its password in front of the host, as in redis://:password@host:6379/0"
            )
    return value


def readable_file(value: str) -> str:
    if value and not os.access(value, os.R_OK):
        raise ValueError("must be the name of a file that can be read")
    return value


def flow_control_url(value: str) -> str:
    if value and urlsplit(value).scheme not in ("redis", "rediss"):
        raise ValueError("must begin with redis:// or rediss://")
    return broker_url(value)


def database_name(value: str) -> str:
    if not value or len(value) > 38 or set(value) & set('/\\. "$*<>:|?\0'):
        raise ValueError('must have 1 to 38 characters and none of / \\ . " $ * < > : | ?')
    return value
