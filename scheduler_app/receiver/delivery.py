"""What a receiver gets, and what it answers when there is nothing to do."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Delivery:
    """A callback whose signature is right. The signature covers `key`, `sent_at` and `body`, nothing else."""

    #: The event's id, the same on every attempt.
    key: str
    #: When this attempt was made.
    sent_at: datetime
    body: bytes = field(repr=False)
    #: All headers; their names are in lower case.
    headers: Mapping[str, str] = field(repr=False)
    #: The schedule, None for a message without one.
    schedule_id: str | None = None
    #: The occurrence that the event stands for.
    run_time: datetime | None = None
    #: 1 for the first attempt.
    attempt: int = 1
    #: How many callbacks, one after another, led to this one.
    hops: int = 0
    #: What shows that you may complete the event, where its schedule has `completion: "callback"`.
    completion_token: str | None = field(default=None, repr=False)

    def json(self) -> Any:
        """The body as a JSON value. Raises ValueError for a body that is not JSON."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with a text of one sentence; a 204 has none."""

    status: int
    text: str = ""

    @property
    def body(self) -> bytes:
        return f"{self.text}\n".encode() if self.text else b""
