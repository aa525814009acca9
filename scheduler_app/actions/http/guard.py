"""The check against server-side request forgery: which addresses and ports a callback may reach."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from scheduler_app.actions.http import special_networks
from scheduler_app.actions.http.url import check_url, port_of
from scheduler_app.config import Settings
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.ports import parse_ports

Network = IPv4Network | IPv6Network


class Guard:
    """Says which addresses and ports may be connected to.

    Callback URLs are written by strangers, and a worker stands inside the network. The guard judges the very
    address that a socket is about to be opened to, never a name or a spelling: a DNS answer that changes
    between check and use ("rebinding") and an address in octal are both plain numbers by then.

    `allowed_networks` are exceptions that an administrator makes to the table in `special_networks`.
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
            return f"{one_word(address)} is not an address"
        if isinstance(ip, IPv4Address):
            reason = self._reason_v4(ip)
            return f"{ip} is {reason}" if reason else None
        reason = self._reason_v6(ip)
        if reason:
            return f"{ip} is {reason}"
        for inner in carried_by(ip):
            if reason := self._reason_v4(inner):
                return f"{ip} leads to {inner}, which is {reason}"
        return None

    def _reason_v4(self, ip: IPv4Address) -> str | None:
        if any(ip in network for network in self._allowed_v4):
            return None
        return next((reason for network, reason in special_networks.NOT_PUBLIC_V4 if ip in network), None)

    def _reason_v6(self, ip: IPv6Address) -> str | None:
        if (
            ip in special_networks.MAPPED
            or ip in special_networks.NAT64
            or any(ip in network for network in self._allowed_v6)
        ):
            return None
        for network, reason in special_networks.NOT_PUBLIC_V6:
            if ip in network:
                return reason
        return None if ip in special_networks.PUBLIC_V6 else "reserved (outside 2000::/3)"


def carried_by(ip: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses inside `ip`: none for a native one, two (server and client) for Teredo.

    RFC 4291 §2.5.5; RFC 6052 §2.2 (a /48 prefix splits the address around bits 64–71); RFC 3056 §2;
    RFC 4380 §4.
    """
    number = int(ip)
    if ip in special_networks.MAPPED or ip in special_networks.NAT64:
        return (IPv4Address(number & 0xFFFFFFFF),)
    if ip in special_networks.COMPATIBLE and number > 1:
        return (IPv4Address(number & 0xFFFFFFFF),)
    if ip in special_networks.NAT64_LOCAL:
        return (IPv4Address((number >> 64 & 0xFFFF) << 16 | number >> 40 & 0xFFFF),)
    if ip in special_networks.SIX_TO_FOUR:
        return (IPv4Address(number >> 80 & 0xFFFFFFFF),)
    if ip in special_networks.TEREDO:
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


def one_word(text: str) -> str:
    """`text` made safe for a sentence: it may come from outside and be anything."""
    return repr(text[:64])
