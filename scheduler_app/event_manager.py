"""What people do with single events: cancel, redrive."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduler_app.domain.errors import Conflict, NotFound
from scheduler_app.domain.event import FINAL, Event, State
from scheduler_app.store import Store
from scheduler_app.store.listing import Position, Window
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

Document = dict[str, Any]
REDRIVEN = "Redriven by a person; its attempts are counted anew"


@dataclass(frozen=True, slots=True)
class Redriven:
    """How many dead letters of a page are on their way again, and where the next page begins."""

    count: int
    following: Position | None


@dataclass(frozen=True)
class EventManager:
    """`send` dispatches events at once; it may fail quietly: beat does the same."""

    store: Store
    send: Callable[[Sequence[Event], datetime], None]

    def get(self, event_id: str) -> Document:
        """Raises NotFound."""
        event = self.store.events.get(event_id)
        if event is None:
            raise NotFound(f"there is no event {event_id}; it may be beyond the retention")
        return event

    def cancel(self, event_id: str, now: datetime) -> Document:
        """Withdraws an event that no worker has. Raises NotFound; Conflict when it is running or final."""
        event = self.get(event_id)
        if not self.store.withdrawals.cancel(event_id, now, "Withdrawn by a person"):
            event = self.get(event_id)
            state = State(event["state"])
            why = "its history is final" if state in FINAL else "its request is in flight, or about to be"
            raise Conflict(f"the event is {state}: {why}, and it cannot be cancelled")
        log.info("event.cancelled", message="A person cancelled an event", event_id=event_id)
        return self.get(event_id)

    def redrive(self, event_id: str, now: datetime) -> Document:
        """Sends a dead letter again, at once. Raises NotFound, and Conflict when it is not one."""
        event = self.get(event_id)
        if self.store.schedules.get(event["schedule_id"]) is None:
            raise Conflict("its schedule was deleted: there is no callback to send it to")
        redriven = self.store.events.redrive([event_id], now, REDRIVEN)
        if not redriven:
            state = self.get(event_id)["state"]
            raise Conflict(f"the event is {state}; only one in error can be redriven")
        log.info("event.redriven", message="A person redrove an event", event_id=event_id)
        self.send(redriven, now)
        return self.get(event_id)

    def redrive_page(
        self, window: Window, now: datetime, *, tenant: str, schedule_id: str | None = None
    ) -> Redriven:
        """Redrives the dead letters of a page. Those of a deleted schedule are void, and say so then."""
        found = self.store.event_lists.page(
            window, tenant=tenant, schedule_id=schedule_id, states={State.ERROR}
        )
        ids = [event["_id"] for event in found.rows]
        redriven = self.store.events.redrive(ids, now, REDRIVEN) if ids else []
        if redriven:
            log.info(
                "events.redriven",
                message="A person redrove events",
                count=len(redriven),
                schedule_id=schedule_id,
            )
            self.send(redriven, now)
        return Redriven(len(redriven), found.following)
