"""How a cron expression is refused."""

from scheduler_app.domain.errors import InvalidField


def refused(message: str) -> InvalidField:
    """The error of the field `cron`; the message says what is wrong and what to write instead."""
    return InvalidField("cron", message)


def quoted(text: str) -> str:
    """A piece of the expression as it is shown in a message, cut where it is long."""
    return repr(text if len(text) <= 40 else text[:40] + "…")
