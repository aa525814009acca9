"""How the sending of a notice ended."""

from typing import Literal, NamedTuple


class NoticeAnswer(NamedTuple):
    outcome: Literal["SUCCESS", "RETRY", "PERMANENT"]
    """The name of an `Outcome`."""
    reason: str = ""
    snippet: str = ""
    """What the receiver said."""
    status_code: int | None = None
