"""A terminal of 80 columns, and what a command shows on it."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Mapping
from pathlib import Path

COLUMNS, LINES = 80, 50
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def shown(command: str, folder: Path, environment: Mapping[str, str]) -> str:
    """What a shell's line writes to the terminal, without colours and carriage returns."""
    return _ESCAPES.sub("", written(command, folder, environment))


def written(command: str, folder: Path, environment: Mapping[str, str]) -> str:
    """The same with the colours."""
    ours, theirs = pty.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        with subprocess.Popen(
            ["bash", "-c", command],
            cwd=folder,
            env={**os.environ, "TERM": "xterm", **environment},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        ) as process:
            os.close(theirs)
            theirs = -1
            text = _read(ours)
            process.wait()
    finally:
        os.close(ours)
        if theirs >= 0:
            os.close(theirs)
    return text.replace("\r\n", "\n").replace("\r", "")


def _read(terminal: int) -> str:
    parts = []
    while True:
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # Linux says so once nobody has the other end
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode()
