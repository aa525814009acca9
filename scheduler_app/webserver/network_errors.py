"""Tells a client that has gone from a fault of this process: both can be an OSError."""

import errno

#: What a socket reports of its network, besides the codes that have an exception of their own.
_OF_THE_NETWORK = frozenset(
    (errno.ENOTCONN, errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ENETUNREACH, errno.ENETDOWN, errno.ENETRESET)
)


def is_of_the_network(error: Exception) -> bool:
    """Whether it says that the client, or the way to it, is gone."""
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    return isinstance(error, OSError) and error.errno in _OF_THE_NETWORK
