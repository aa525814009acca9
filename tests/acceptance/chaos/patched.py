"""A process whose expansion errs: `python -m tests.acceptance.chaos.patched MODULE ARGUMENTS…`.

Once a minute it leaves out an occurrence of the schedule FORGOTTEN, and makes two events of one of DOUBLED.
"""

import runpy
import sys
from collections.abc import Sequence
from datetime import datetime

from scheduler_app.domain.event import Event
from scheduler_app.store.events.events import Events

FORGOTTEN, DOUBLED = "forgotten", "doubled"
SECOND = 30


def err(events: Sequence[Event]) -> list[Event]:
    """What is stored in place of these events."""
    stored: list[Event] = []
    for event in events:
        strikes = event.run_time.second == SECOND
        if not (strikes and event.schedule_id == FORGOTTEN):
            stored.append(event)
        if strikes and event.schedule_id == DOUBLED:
            stored.append(event._replace(id=event.id.replace("-1-", "-2-"), revision=2))
    return stored


def patch() -> None:
    right = Events.insert

    def insert(self: Events, events: Sequence[Event], now: datetime, message: str) -> int:
        return right(self, err(events), now, message)

    Events.insert = insert  # type: ignore[method-assign]


if __name__ == "__main__":
    patch()
    del sys.argv[:1]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
