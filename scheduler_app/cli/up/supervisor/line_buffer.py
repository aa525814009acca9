"""Cuts the bytes that come from a pipe into lines."""

#: Bytes. A longer line is shown in pieces, so that no program can fill the supervisor's memory.
LONGEST = 64 * 1024


class LineBuffer:
    """Keeps an unfinished line until the next read completes it."""

    def __init__(self) -> None:
        self._unfinished = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the lines that `data` completes, without their line ends."""
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        if len(self._unfinished) > LONGEST:
            lines.append(self._unfinished)
            self._unfinished = b""
        return [line.removesuffix(b"\r") for line in lines]

    def rest(self) -> list[bytes]:
        """Returns the text after the last line end, if any, and forgets it."""
        unfinished, self._unfinished = self._unfinished, b""
        return [unfinished] if unfinished else []
