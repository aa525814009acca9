"""A process with a bug: `python -m tests.acceptance.bugged ROLE MODULE ARGUMENTS…`.

It runs the module as `python -m` does. A schedule named "bug in ROLE" makes it raise, from frames that hold
all that the schedule has.
"""

import runpy
import sys
from datetime import datetime
from typing import Any

from scheduler_app.domain.event import Event
from scheduler_app.domain.schedule import Deliverable, Schedule

ROLE = sys.argv[1]


def raise_for(schedule: Schedule) -> None:
    held = (schedule.name, schedule.action, schedule.signing)
    if schedule.name == f"bug in {ROLE}":
        raise RuntimeError(f"a bug, with {len(held)} things in a local variable")


def break_recurrence() -> None:
    right = Schedule.recurrence

    def recurrence(self: Schedule) -> Any:
        raise_for(self)
        return right(self)

    Schedule.recurrence = recurrence  # type: ignore[method-assign]


def break_request() -> None:
    from scheduler_app.actions.http import sender
    from scheduler_app.actions.http.request import request_of as right

    def request_of(event: Event, deliverable: Deliverable, now: datetime) -> Any:
        made = right(event, deliverable, now)
        if isinstance(deliverable, Schedule):
            raise_for(deliverable)
        return made

    sender.request_of = request_of  # type: ignore[attr-defined]


if __name__ == "__main__":
    break_request() if ROLE == "worker" else break_recurrence()
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
