"""Free and occupied ports of 127.0.0.1."""

import errno
import random
import socket
from collections import deque

LOOPBACK = "127.0.0.1"

# Below the range from which systems assign ports to outgoing connections: such a connection must not occupy
# the port of a server that is being restarted.
RANGE = range(20_000, 30_000)
#: The ports that `free_port` returned last: their callers may not listen on them yet.
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
    another one each time. Raises OSError where all are taken."""
    for port in random.sample(RANGE, len(RANGE)):
        if port not in _given and is_free(port):
            _given.append(port)
            return port
    raise OSError(errno.EADDRINUSE, f"no port of {LOOPBACK} from {RANGE[0]} to {RANGE[-1]} is free")


def listens(port: int) -> bool:
    """Whether a process accepts connections on 127.0.0.1 and `port`."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0
