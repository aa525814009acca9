"""What can be said of a URL's address before anything is sent: whether the guard would let it be reached.

A name is not resolved: a request must not wait for somebody's name server, and what the name leads to counts
when it is called. So this is a courtesy to whoever writes the URL; the guard judges each connection all the
same.
"""

import socket
from ipaddress import IPv6Address
from urllib.parse import urlsplit

from scheduler_app.actions.http.guard import Guard
from scheduler_app.domain.errors import InvalidField

_LOOPBACK = ("127.0.0.1", "::1")


def check_reachable(url: str, guard: Guard) -> None:
    """Raises InvalidField("callback_url", …) where `guard` refuses every address that `url` can lead to. The
    URL has passed `check_url`."""
    host = urlsplit(url).hostname or ""
    refusals = [guard.refusal(address) for address in _addresses(host)]
    if refusals and all(refusals):
        raise InvalidField(
            "callback_url",
            f"{host[:200]} is a private or reserved address, which callbacks must not reach: take a"
            " public one, or let an administrator allow its network by CALLBACK_ALLOWED_NETWORKS",
        )


def _addresses(host: str) -> tuple[str, ...]:
    """The addresses that a host is without asking anybody; none for a name. Also the spellings that libcurl
    takes for an IPv4 address: 127.1, 0x7f000001, 2130706433, 0177.0.0.1."""
    name = host.lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return _LOOPBACK
    if ":" in name:
        return (str(IPv6Address(name)),)
    try:
        return (socket.inet_ntoa(socket.inet_aton(name)),)
    except OSError:
        return ()
