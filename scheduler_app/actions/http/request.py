"""What is asked of a receiver."""

from typing import NamedTuple


class Request(NamedTuple):
    """One attempt's HTTP request.

    `key` is the event's id; it names the request in its `Response` and must be unique among those in flight.
    `method` is GET, POST, PUT, PATCH, DELETE or HEAD. `headers` are sent in this order, as they are
    (`headers_for` makes them). `body` None sends none; a HEAD never has one (RFC 9110 §9.3.2).
    `timeout_seconds` is for the whole answer, its body included; connecting may take the shorter of it
    and 5 s.
    """

    key: str
    url: str
    method: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None
    timeout_seconds: float

    def __repr__(self) -> str:
        # The rest may be secret, and a traceback may show it.
        return f"Request(key={self.key!r})"
