"""Stand in for beats and workers, where people have to be told that these are gone.

A process beside them looks whether beats tick, and whether messages of notifications are sent. Where no beat
ticks it notes what of the machinery is missing, and tells of failures as a beat does; messages that nobody
sends it sends itself. Any number of processes may try these writes: a failure is told once, whoever does it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.domain.notification_rule import MESSAGE_TYPES
from scheduler_app.store import Store
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.duties.cause_inspection import CauseInspection
from scheduler_app.usecases.duties.telling import RuleTelling

log = get_logger(__name__)

#: Workers have had their time with a message after so long.
UNSENT_SECONDS: Final = 20.0
#: Messages of one look.
AT_ONCE: Final = 100
#: Messages that were made before that are tried no more.
OLDEST: Final = timedelta(hours=6)


@dataclass(frozen=True)
class StandIn:
    """`has_beat` says whether a beat ticks; `deliver` sends the events of these ids as a worker does, and
    waits for that."""

    store: Store
    inspection: CauseInspection
    telling: RuleTelling
    has_beat: Callable[[], bool]
    deliver: Callable[[Sequence[str]], None]

    def look(self, now: datetime) -> int:
        """Does what nobody else does; returns how many messages it tried to send. Raises a STORE_FAULT."""
        tenants = {rule.tenant for rule in self.store.notification_rules.everybodys()}
        if not tenants:
            return 0
        patience = timedelta(seconds=UNSENT_SECONDS)
        if not self.has_beat():
            self.inspection.inspect_machinery(now)
            self.telling.tell_page(now)
            patience = timedelta()
        unsent = self.store.messages.unsent(
            tenants, MESSAGE_TYPES, made_after=now - OLDEST, due_by=now - patience, limit=AT_ONCE
        )
        if unsent:
            log.warning(
                "stand_in.delivers",
                message="No worker sends the messages of notifications; this process does",
                count=len(unsent),
            )
            self.deliver(unsent)
        return len(unsent)
