"""Tells exceptions of a broker that is away, or refuses, from bugs in our own code."""

from typing import Any

from kombu.exceptions import OperationalError

#: kombu counts these among its transport's errors, to survive a race of its own in the consumer. Anywhere
#: else they are a mistake in code: a missing key, an argument that Redis has no form for.
_OUR_OWN = ("KeyError", "DataError")


def broker_faults(connection: Any) -> tuple[type[Exception], ...]:
    """The exceptions by which a broker that is away or refuses shows; `connection` is kombu's."""
    known = dict.fromkeys(
        (OperationalError, OSError, *connection.connection_errors, *connection.channel_errors)
    )
    return tuple(error for error in known if error.__name__ not in _OUR_OWN)
