"""The check against server-side request forgery: which addresses and ports a callback may reach.

The table of networks that are not public, each with its reason, follows IANA's special-purpose address
registries for IPv4 and IPv6 (RFC 6890, RFC 8190), read as "reachable from the whole internet or not". It is
our own, because `ipaddress.is_global` has changed its mind between patch releases of Python (CVE-2024-4032),
and because it says no reason.

`check_reachable` says of a URL's address before anything is sent whether the guard would let it be reached. A
name is not resolved: a request must not wait for somebody's name server, and what the name leads to counts
when it is called. So this is a courtesy to whoever writes the URL; the guard judges each connection all the
same.
"""

import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from scheduler_app.actions.http.request import check_url, port_of
from scheduler_app.config import Settings
from scheduler_app.config.parsers import parse_ports
from scheduler_app.domain.errors import InvalidField

NOT_PUBLIC_V4: tuple[tuple[IPv4Network, str], ...] = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("0.0.0.0/32", "unspecified"),
        ("0.0.0.0/8", "this network (RFC 791)"),
        ("10.0.0.0/8", "private (RFC 1918)"),
        ("100.64.0.0/10", "shared by carriers (RFC 6598)"),
        ("127.0.0.0/8", "loopback"),
        # Azure's host answers here with the machine's secrets, although the address is a public one.
        ("168.63.129.16/32", "the host of a virtual machine"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private (RFC 1918)"),
        ("192.0.0.0/24", "assigned to protocols (RFC 6890)"),
        ("192.0.2.0/24", "for documentation (RFC 5737)"),
        ("192.88.99.0/24", "a 6to4 relay (RFC 7526)"),
        ("192.168.0.0/16", "private (RFC 1918)"),
        ("198.18.0.0/15", "for benchmarks (RFC 2544)"),
        ("198.51.100.0/24", "for documentation (RFC 5737)"),
        ("203.0.113.0/24", "for documentation (RFC 5737)"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved (RFC 1112)"),
    )
)

PUBLIC_V6 = IPv6Network("2000::/3")
"""The only unicast space that IANA has opened; what lies outside is refused even where it has no name."""

NOT_PUBLIC_V6: tuple[tuple[IPv6Network, str], ...] = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::/96", "IPv4-compatible (RFC 4291)"),
        ("64:ff9b:1::/48", "a translator of the local network (RFC 8215)"),
        ("100::/64", "discarded (RFC 6666)"),
        ("2001::/32", "a Teredo tunnel (RFC 4380)"),
        ("2001::/23", "assigned to protocols (RFC 2928)"),
        ("2001:db8::/32", "for documentation (RFC 3849)"),
        ("2002::/16", "a 6to4 tunnel (RFC 7526)"),
        ("3fff::/20", "for documentation (RFC 9637)"),
        ("fc00::/7", "unique-local (RFC 4193)"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local (RFC 3879)"),
        ("ff00::/8", "multicast"),
    )
)

IPV4_MAPPED = IPv6Network("::ffff:0:0/96")
NAT64 = IPv6Network("64:ff9b::/96")
IPV4_COMPATIBLE = IPv6Network("::/96")
NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
SIX_TO_FOUR = IPv6Network("2002::/16")
TEREDO = IPv6Network("2001::/32")


Network = IPv4Network | IPv6Network


class Guard:
    """Says which addresses and ports may be connected to.

    Callback URLs are written by strangers, and a worker stands inside the network. The guard judges the very
    address that a socket is about to be opened to, never a name or a spelling: a DNS answer that changes
    between check and use ("rebinding") and an address in octal are both plain numbers by then.

    `allowed_networks` are exceptions that an administrator makes to `NOT_PUBLIC_V4` and `NOT_PUBLIC_V6`.
    `denied_ports` are refused at every address.
    """

    def __init__(
        self, allowed_networks: Iterable[Network] = (), denied_ports: frozenset[int] = frozenset()
    ) -> None:
        self._denied_ports = denied_ports
        networks = tuple(allowed_networks)
        self._allowed_v4 = tuple(net for net in networks if isinstance(net, IPv4Network))
        self._allowed_v6 = tuple(net for net in networks if isinstance(net, IPv6Network))

    def check_url(self, url: str) -> None:
        """Raises InvalidField("callback_url", …) for what no callback's URL can be, and for a denied port."""
        check_url(url)
        if refusal := self.port_refusal(port_of(url)):
            raise InvalidField("callback_url", f"{refusal}; give another port")

    def port_refusal(self, port: int) -> str | None:
        """Why `port` must not be reached, or None if it may."""
        return f"port {port} is denied by CALLBACK_DENIED_PORTS" if port in self._denied_ports else None

    def refusal(self, address: str) -> str | None:
        """Why `address` must not be reached ("127.0.0.1 is loopback"), or None if it may.

        For the log alone: what a name leads to inside of the network is not for whoever wrote the URL.

        `address` is in numbers, IPv4 or IPv6; a zone (`%eth0`) is ignored. An IPv6 address that carries an
        IPv4 one is judged by both: the packet ends at the IPv4 address, whatever it is wrapped in. Mapped
        addresses, and those of the well-known NAT64 prefix, may be reached where the IPv4 one may: on a
        network that has IPv6 only, every IPv4 receiver is reached so (RFC 6146).
        """
        try:
            ip = ip_address(address.partition("%")[0])
        except ValueError:
            return f"{address[:64]!r} is not an address"
        if isinstance(ip, IPv4Address):
            reason = self._reason_v4(ip)
            return f"{ip} is {reason}" if reason else None
        if reason := self._reason_v6(ip):
            return f"{ip} is {reason}"
        for inner in embedded_ipv4(ip):
            if reason := self._reason_v4(inner):
                return f"{ip} leads to {inner}, which is {reason}"
        return None

    def _reason_v4(self, ip: IPv4Address) -> str | None:
        if any(ip in network for network in self._allowed_v4):
            return None
        return next((reason for network, reason in NOT_PUBLIC_V4 if ip in network), None)

    def _reason_v6(self, ip: IPv6Address) -> str | None:
        if ip in IPV4_MAPPED or ip in NAT64 or any(ip in network for network in self._allowed_v6):
            return None
        outside = None if ip in PUBLIC_V6 else "reserved (outside 2000::/3)"
        return next((reason for network, reason in NOT_PUBLIC_V6 if ip in network), outside)


def embedded_ipv4(ip: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses inside `ip`: none for a native one, two (server and client) for Teredo.

    RFC 4291 §2.5.5; RFC 6052 §2.2 (a /48 prefix splits the address around bits 64–71); RFC 3056 §2;
    RFC 4380 §4.
    """
    number = int(ip)
    if ip in IPV4_MAPPED or ip in NAT64 or (ip in IPV4_COMPATIBLE and number > 1):
        return (IPv4Address(number & 0xFFFFFFFF),)
    if ip in NAT64_LOCAL:
        return (IPv4Address((number >> 64 & 0xFFFF) << 16 | number >> 40 & 0xFFFF),)
    if ip in SIX_TO_FOUR:
        return (IPv4Address(number >> 80 & 0xFFFFFFFF),)
    if ip in TEREDO:
        return (IPv4Address(number >> 64 & 0xFFFFFFFF), IPv4Address(~number & 0xFFFFFFFF))
    return ()


def parse_networks(text: str) -> tuple[Network, ...]:
    """The networks in "127.0.0.0/8, ::1/128" (an address alone is a network of one; empty gives none).

    Raises ValueError, which names the one that is not a network.
    """
    networks: list[Network] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        try:
            networks.append(ip_network(part))
        except ValueError as error:
            raise ValueError(f"{part!r} is not a network such as 10.1.0.0/16 or fd00::/8: {error}") from None
    return tuple(networks)


def guard_of(settings: Settings) -> Guard:
    """Returns the guard that CALLBACK_ALLOWED_NETWORKS and CALLBACK_DENIED_PORTS ask for."""
    return Guard(
        parse_networks(settings.callback_allowed_networks), parse_ports(settings.callback_denied_ports)
    )


def refused_by_settings(port_refusal: str | None) -> str:
    """The sentence for an attempt of which the guard refused the port, or every address."""
    reason = port_refusal or "the receiver has a private address; CALLBACK_ALLOWED_NETWORKS does not allow it"
    return f"refused by this worker's settings: {reason}"


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
