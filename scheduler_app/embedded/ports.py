"""Free and occupied ports of 127.0.0.1."""

import errno
import random
import socket
from collections import deque

LOOPBACK = "127.0.0.1"

# Below the range from which systems assign ports to outgoing connections: such a connection must not occupy
# the port of a server that is being restarted.
RANGE = range(20_000, 30_000)
#: Ports that this process has been told of lately: who was told may not listen yet.
_given: deque[int] = deque(maxlen=64)


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether a server could listen on `host` and `port` now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As servers do: connections in TIME_WAIT do not occupy the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def free_port() -> int:
    """Returns a port of 127.0.0.1 that was free a moment ago (another process may still take it first), and
    another one each time."""
    while True:
        port = random.choice(RANGE)  # noqa: S311
        if port not in _given and is_free(port):
            _given.append(port)
            return port


def listens(port: int) -> bool:
    """Whether somebody accepts connections on 127.0.0.1 and `port`."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0
