"""Counts the wrong API keys of each address, by the sign-in and by the API, and limits them.

The right key opens whatever its address has tried before, because all clients
behind one proxy or one router have one address.
"""

import ipaddress
from collections import OrderedDict
from threading import Lock

from flask import current_app, request

from scheduler_app.api.forwarded import unmapped
from scheduler_app.api.problems import Problem
from scheduler_app.clock import monotonic
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

#: Wrong keys of one address within `SECONDS` that are answered by a 401. Each process of the API counts for
#: itself.
MOST = 10
SECONDS = 60
#: Addresses that are remembered; beyond that, the one whose first wrong key is the oldest is forgotten.
ADDRESSES = 10_000
#: A client that has one IPv6 address mostly has all of its network.
_IPV6_PREFIX = 64


class WrongKeys:
    """The addresses that have sent a wrong key, and how many since when."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, address: str, now: float) -> int:
        """Counts a wrong key; returns how many the address has sent since its first one within `SECONDS`.
        `now` is in seconds, of any clock that only goes forward."""
        client = _client(address)
        with self._lock:
            began, count = self._counts.get(client, (now, 0))
            if now - began >= SECONDS:
                del self._counts[client]
                began, count = now, 0
            self._counts[client] = (began, count + 1)
            if len(self._counts) > ADDRESSES:
                self._counts.popitem(last=False)
        return count + 1


def refuse_beyond_limit(event: str) -> None:
    """Counts and logs a wrong key of the request's client, as `event`. Raises Problem beyond the limit."""
    counted: WrongKeys = current_app.extensions["wrong_keys"]
    address = request.remote_addr or ""
    count = counted.add(address, monotonic())
    if count <= MOST:
        log.warning(event, message="A wrong API key was refused", address=address)
        return
    if count == MOST + 1:
        log.warning("api.keys_limited", message="An address sent many wrong API keys", address=address)
    raise Problem(
        429,
        f"more than {MOST} wrong API keys from this address within a minute; wait, or use a right one",
        headers={"Retry-After": str(SECONDS)},
    )


def _client(address: str) -> str:
    try:
        given = unmapped(address)
    except ValueError:
        return address
    if given.version == 4:
        return str(given)
    return str(ipaddress.ip_network((int(given), _IPV6_PREFIX), strict=False))
