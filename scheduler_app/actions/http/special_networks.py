"""Networks that are not public, each with its reason: IANA's special-purpose registries, as data.

Source: IANA's special-purpose address registries for IPv4 and IPv6 (RFC 6890, RFC 8190), read as "reachable
from the whole internet or not". Our own table, because `ipaddress.is_global` has changed its mind between
patch releases of Python (CVE-2024-4032), and because it says no reason.
"""

from ipaddress import IPv4Network, IPv6Network

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

MAPPED = IPv6Network("::ffff:0:0/96")
NAT64 = IPv6Network("64:ff9b::/96")
COMPATIBLE = IPv6Network("::/96")
NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
SIX_TO_FOUR = IPv6Network("2002::/16")
TEREDO = IPv6Network("2001::/32")
