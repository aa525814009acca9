"""Bytes as they come from a pipe, cut into lines."""

#: A line longer than this is shown in pieces, so that a program cannot fill our memory.
LONGEST = 64 * 1024


class Lines:
    """Remembers the begun line between two reads."""

    def __init__(self) -> None:
        self._begun = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, without their ends."""
        *lines, self._begun = (self._begun + data).split(b"\n")
        if len(self._begun) > LONGEST:
            lines.append(self._begun)
            self._begun = b""
        return [line.removesuffix(b"\r") for line in lines]

    def rest(self) -> list[bytes]:
        """What stood after the last end of line."""
        begun, self._begun = self._begun, b""
        return [begun] if begun else []
