"""What the domain knows of an action: its kind, and which actions share a receiver.

Where no destination is named, the origin is the unit of isolation: scheme, host and port of a receiver.
"""

import re
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import Protocol, Self


class Action(Protocol):
    """What an occurrence does. Each kind has a frozen value of its own, whose repr shows no secret."""

    @property
    def kind(self) -> str:
        """The kind's name: `action.type` of a stored schedule, and a key of `actions.registry.KINDS`."""
        ...

    @property
    def isolation_key(self) -> str:
        """What an attempt may have to wait for, at most 300 characters: the origin of an HTTP receiver.

        Attempts with the same key share limits and take turns. Attempts with different keys never wait for
        each other. It is shown in metrics and logs, so it must not contain a secret.
        """
        ...

    @property
    def destination(self) -> str | None:
        """The id of the destination that it names, with its tenant; None if it names none."""
        ...

    def unmasked(self, old: "Action | None") -> Self:
        """Returns the action with the values of `old`, the schedule's, where this one has masks for them.
        Raises InvalidField where a mask stands for nothing."""
        ...

    @property
    def completion_problem(self) -> str | None:
        """Why a schedule with this action cannot have `completion` `callback`; None if it can."""
        ...


#: The origin of what has no usable URL. All such share it, and what an origin is entitled to.
UNKNOWN_ORIGIN = "unknown"
MAX_ORIGIN = 300
"""Characters; a host name has at most 253."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
# The longest authority that is an origin of MAX_ORIGIN characters: `https://` before it, `:65535` behind it.
_BEGINNING = re.compile(r"(https?://[^/?#]{1,286})(?:[/?#]|\Z)", re.IGNORECASE)
_PARTS = re.compile(
    r"(?P<scheme>https?)://(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<host>[a-z0-9._-]+))(?::(?P<port>[0-9]{0,5}))?"
)


def origin_of(url: str) -> str:
    """`https://example.com:443` of `HTTPS://Example.com/hook?a=1`: lower case, with the port, at most
    MAX_ORIGIN characters.

    It never raises: anything but an http or https URL with a host has UNKNOWN_ORIGIN, even what is not text
    (a damaged document).
    """
    beginning = _BEGINNING.match(url) if isinstance(url, str) else None
    return _origin_of_beginning(beginning[1]) if beginning else UNKNOWN_ORIGIN


# By scheme and authority alone: queries that differ by the event would fill the cache.
@lru_cache(maxsize=4096)
def _origin_of_beginning(beginning: str) -> str:
    parts = _PARTS.fullmatch(beginning.lower())
    if parts is None:
        return UNKNOWN_ORIGIN
    scheme, port = parts["scheme"], int(parts["port"] or _DEFAULT_PORTS[parts["scheme"]])
    if not 1 <= port <= 65535:
        return UNKNOWN_ORIGIN
    if parts["ipv6"] is None:
        # The dot at the end is DNS's root: the same host with and without it.
        host = parts["host"].rstrip(".")
        return f"{scheme}://{host}:{port}" if host else UNKNOWN_ORIGIN
    try:
        return f"{scheme}://[{IPv6Address(parts['ipv6']).compressed}]:{port}"
    except AddressValueError:
        return UNKNOWN_ORIGIN
