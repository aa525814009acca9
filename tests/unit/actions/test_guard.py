from ipaddress import ip_network

import pytest

from scheduler_app.actions.http import Guard, parse_networks
from scheduler_app.config.parsers import DENIED_PORTS, parse_ports
from scheduler_app.domain.errors import InvalidField

REFUSED = [
    ("0.0.0.0", "unspecified"),
    ("0.1.2.3", "this network"),
    ("10.0.0.1", "private"),
    ("10.255.255.255", "private"),
    ("100.64.0.1", "carriers"),
    ("100.100.100.200", "carriers"),
    ("100.127.255.255", "carriers"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("168.63.129.16", "virtual machine"),
    ("169.254.169.254", "link-local"),
    ("169.254.170.2", "link-local"),
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.0.0.1", "protocols"),
    ("192.0.0.192", "protocols"),
    ("192.0.2.1", "documentation"),
    ("192.88.99.1", "6to4"),
    ("192.168.1.1", "private"),
    ("198.18.0.1", "benchmarks"),
    ("198.19.255.255", "benchmarks"),
    ("198.51.100.7", "documentation"),
    ("203.0.113.7", "documentation"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.250", "multicast"),
    ("240.0.0.1", "reserved"),
    ("255.255.255.255", "broadcast"),
    ("::", "unspecified"),
    ("::1", "loopback"),
    ("::7f00:1", "IPv4-compatible"),
    ("::8.8.8.8", "IPv4-compatible"),
    ("::ffff:127.0.0.1", "leads to 127.0.0.1, which is loopback"),
    ("::ffff:10.1.2.3", "leads to 10.1.2.3, which is private"),
    ("::ffff:a9fe:a9fe", "leads to 169.254.169.254, which is link-local"),
    ("::ffff:0:127.0.0.1", "reserved"),
    ("64:ff9b::127.0.0.1", "leads to 127.0.0.1, which is loopback"),
    ("64:ff9b::a9fe:a9fe", "leads to 169.254.169.254, which is link-local"),
    ("64:ff9b:1::1", "translator"),
    ("64:ff9b:1:7f00:0:100::", "translator"),
    ("100::1", "discarded"),
    ("2001::1", "Teredo"),
    ("2001:0:4136:e378:8000:63bf:80ff:fffe", "Teredo"),
    ("2001:2::1", "protocols"),
    ("2001:10::1", "protocols"),
    ("2001:20::1", "protocols"),
    ("2001:db8::1", "documentation"),
    ("2002:7f00:1::", "6to4"),
    ("2002:a9fe:a9fe::1", "6to4"),
    ("2002:808:808::1", "6to4"),
    ("3fff::1", "documentation"),
    ("4000::1", "reserved"),
    ("5f00::1", "reserved"),
    ("fc00::1", "unique-local"),
    ("fd00:ec2::254", "unique-local"),
    ("fe80::1", "link-local"),
    ("fe80::1%eth0", "link-local"),
    ("fec0::1", "site-local"),
    ("ff02::1", "multicast"),
]

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "168.63.129.17",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.167.255.255",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
]


@pytest.mark.parametrize(("address", "reason"), REFUSED)
def test_an_address_that_is_not_public_is_refused_with_its_reason(address: str, reason: str) -> None:
    refusal = Guard().refusal(address)
    assert refusal is not None
    assert reason in refusal


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_reached(address: str) -> None:
    assert Guard().refusal(address) is None


@pytest.mark.parametrize("address", ["", "localhost", "127.1", "0x7f.1", "/run/docker.sock", "1.2.3.4\n"])
def test_what_is_not_an_address_in_numbers_is_refused(address: str) -> None:
    refusal = Guard().refusal(address)
    assert refusal is not None
    assert "is not an address" in refusal


@pytest.mark.parametrize(
    ("networks", "address", "allowed"),
    [
        ("127.0.0.0/8", "127.0.0.1", True),
        ("127.0.0.0/8", "127.9.9.9", True),
        ("127.0.0.0/8", "::1", False),
        ("127.0.0.0/8", "10.0.0.1", False),
        ("127.0.0.0/8", "::ffff:127.0.0.1", True),
        ("127.0.0.0/8", "::127.0.0.1", False),
        ("127.0.0.0/8, ::1/128", "::1", True),
        ("10.1.0.0/16", "10.1.255.255", True),
        ("10.1.0.0/16", "10.2.0.0", False),
        ("10.0.0.0/8", "64:ff9b::10.0.0.1", True),
        ("fd00::/8", "fd12::1", True),
        ("fd00::/8", "fe80::1", False),
        # Allowing a tunnel allows the way, not every address at its other end.
        ("2002::/16", "2002:808:808::1", True),
        ("2002::/16", "2002:7f00:1::1", False),
        ("2002::/16, 127.0.0.0/8", "2002:7f00:1::1", True),
        ("64:ff9b:1::/48", "64:ff9b:1:808:8:800::", True),
        ("64:ff9b:1::/48", "64:ff9b:1:7f00:0:100::", False),
        ("::/96", "::8.8.8.8", True),
        ("::/96", "::127.0.0.1", False),
        ("::/0", "::ffff:127.0.0.1", False),
        # Teredo: the server stands in bits 32–63, the client inverted in the last 32.
        ("2001::/32", "2001:0:808:808:0:0:f7f7:f7f7", True),
        ("2001::/32", "2001:0:7f00:1:0:0:f7f7:f7f7", False),
        ("2001::/32", "2001:0:808:808:0:0:80ff:fffe", False),
    ],
)
def test_an_allowed_network_excepts_its_own_addresses_only(
    networks: str, address: str, allowed: bool
) -> None:
    assert (Guard(parse_networks(networks)).refusal(address) is None) is allowed


def test_networks_are_read_from_a_list_with_commas() -> None:
    assert parse_networks(" 127.0.0.0/8, ::1/128 ,10.1.2.3,") == (
        ip_network("127.0.0.0/8"),
        ip_network("::1/128"),
        ip_network("10.1.2.3/32"),
    )
    assert parse_networks("") == ()


@pytest.mark.parametrize("bad", ["10.0.0.0/33", "10.0.0.1/8", "localhost", "10.0.0.0-10.0.0.9"])
def test_a_network_that_is_none_is_named(bad: str) -> None:
    with pytest.raises(ValueError, match=bad):
        parse_networks(f"127.0.0.0/8,{bad}")


@pytest.mark.parametrize(
    "port",
    [22, 25, 110, 143, 389, 445, 587, 993, 3306, 5432, 5672, 6379, 11211, 26379, 27017, 27018, 6667],
)
def test_the_ports_of_other_protocols_are_denied_by_default(port: int) -> None:
    guard = Guard(denied_ports=parse_ports(DENIED_PORTS))
    assert guard.port_refusal(port) == f"port {port} is denied by CALLBACK_DENIED_PORTS"
    for url in (
        f"http://example.com:{port}/",
        f"https://[2001:db8::1]:{port}?a=b:80",
        f"HTTP://a:{port:05}#",
    ):
        with pytest.raises(InvalidField, match="CALLBACK_DENIED_PORTS; give another port"):
            guard.check_url(url)
        Guard(denied_ports=parse_ports("none")).check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://a/",
        "https://a/",
        "http://a:80/",
        "http://a:8080/:25",
        "https://[2001:db8::25]/",
        "https://a:8443/?x=:25",
        "http://a:3000",
        "http://a:32768/",
        "http://a:60999/",
    ],
)
def test_ports_of_the_web_and_those_that_a_program_is_given_are_not(url: str) -> None:
    Guard(denied_ports=parse_ports(DENIED_PORTS)).check_url(url)


def test_ports_are_read_from_a_list_with_ranges() -> None:
    assert parse_ports(" 25, 6000-6002 ,25,") == {25, 6000, 6001, 6002}
    assert parse_ports("none") == parse_ports("") == frozenset()
