"""What a command prints: the beginning and the end are kept, and no secret of its environment in them."""

from collections import deque
from collections.abc import Iterable

from scheduler_app.domain.masking import MASK
from scheduler_app.domain.text import visible

#: Kept of the beginning, and as much of the end.
KEPT_BYTES = 64 * 1024
#: Shorter values are no secrets: they stand in any text.
MIN_SECRET = 4


class Output:
    """Takes any amount, and keeps `KEPT_BYTES` of the beginning and of the end."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = KEPT_BYTES - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data)
        self._tail_bytes += len(data)
        while self._tail_bytes - len(self._tail[0]) >= KEPT_BYTES:
            self._tail_bytes -= len(self._tail.popleft())

    def text(self, secrets: Iterable[str]) -> str:
        """The text, with a mask for each secret, and with a line where something was left out."""
        head, tail = bytes(self._head), b"".join(self._tail)
        left_out = self.total - len(head) - KEPT_BYTES
        values = [value.encode() for value in secrets if len(value) >= MIN_SECRET]
        values.sort(key=len, reverse=True)
        if left_out <= 0:
            whole = _masked(head + tail, values)
            return _fitting(whole[:KEPT_BYTES]) + _fitting(whole[KEPT_BYTES:], from_end=True)
        # A secret that the cut divides would be left as two halves.
        head = _masked(_without_part(head, values, at_end=True), values)
        tail = _masked(_without_part(tail[-KEPT_BYTES:], values, at_end=False), values)
        return f"{_fitting(head)}\n[{left_out} bytes left out]\n{_fitting(tail, from_end=True)}"


def _masked(data: bytes, values: list[bytes]) -> bytes:
    for value in values:
        data = data.replace(value, MASK.encode())
    return data


def _without_part(data: bytes, values: list[bytes], *, at_end: bool) -> bytes:
    """Without the longest part of a value that the cut may have divided."""
    longest = 0
    for value in values:
        for length in range(min(len(value) - 1, len(data)), longest, -1):
            if data.endswith(value[:length]) if at_end else data.startswith(value[-length:]):
                longest = length
                break
    if not longest:
        return data
    return data[:-longest] if at_end else data[longest:]


def _fitting(data: bytes, *, from_end: bool = False) -> str:
    """The text, escaped, of which no more is kept than its share: what is no text takes several times its
    bytes, and all attempts of an event have to fit into one document."""
    shown = visible(data.decode("utf-8", "replace")).encode("utf-8", "replace")
    if len(shown) > KEPT_BYTES:
        shown = shown[-KEPT_BYTES:] if from_end else shown[:KEPT_BYTES]
    return shown.decode("utf-8", "ignore")
