"""Tells exceptions of a broker that is away, or refuses, from bugs in our own code."""

from typing import Any

from kombu.exceptions import OperationalError

#: kombu counts these among its transport's errors, to survive a race of its own in the consumer. Anywhere
#: else they are a mistake in code: a missing key, an argument that Redis has no form for.
_OUR_OWN = ("KeyError", "DataError")


class TakesNoMessages(TimeoutError):
    """The broker answers, and takes no messages: mostly because its memory or its disk is full."""


def broker_faults(connection: Any) -> tuple[type[Exception], ...]:
    """The exceptions that mean a broker is away or refuses. `connection` is one of kombu's, or a result
    backend of Celery, which knows its errors by the same names."""
    known = dict.fromkeys(
        (OperationalError, OSError, *connection.connection_errors, *connection.channel_errors)
    )
    return tuple(error for error in known if error.__name__ not in _OUR_OWN)
