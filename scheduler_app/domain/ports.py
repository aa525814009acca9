"""Ports at which no receiver of HTTP listens, and where a request could be taken for something else."""

NONE = "none"

#: WHATWG Fetch, "port blocking", as browsers have it, but for port 9, which discards whatever it is sent; and
#: databases, brokers, directories, remote desktops, which it leaves out. What speaks HTTP is not among them,
#: however internal: that is for CALLBACK_ALLOWED_NETWORKS to judge.
DENIED = (
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
    if text.strip().lower() == NONE:
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
            f" {NONE}; not {text[:32]!r}"
        )
    return int(digits)
