"""Notify: tells destinations how events ended, and that a schedule was paused.

Each notification is a message, which is delivered as every message is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduler_app.domain.event import Event
from scheduler_app.domain.ids import is_message, message_id_of, name_of
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.notification import PAUSED, SUBJECTS, Notifying, notification
from scheduler_app.domain.retry import RetryPolicy
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from scheduler_app.store.events.events import AttemptEntry
from scheduler_app.store.events.messages import EventOwingNotification
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

EVENTS_A_PAGE = 500
#: Characters of what a command has printed.
MAX_OUTPUT = 1_000
_WORDS = {Notifying.ON_SUCCESS: "-on-success", Notifying.ON_FAILURE: "-on-failure"}
_STATES = {Notifying.ON_SUCCESS: "completed", Notifying.ON_FAILURE: "error"}


@dataclass(frozen=True)
class Notifications:
    """Makes notifications. `dispatch` dispatches messages that are due; its failures are ignored, because the
    next tick of a beat does the same. `max_retries` is for destinations that name none."""

    store: Store
    dispatch: Callable[[Sequence[Event], datetime], None]
    max_retries: int

    def notify_page(self, now: datetime) -> bool:
        """Makes the notifications of events that ended, oldest first; True when there may be more.

        The mark that each event has since its end goes only after its message is stored, whose id is derived:
        whoever dies in between leaves a message that is not made again. Raises a STORE_FAULT.
        """
        found, looked_at = self.store.owed_notifications.oldest(limit=EVENTS_A_PAGE)
        named = {id(each): self._destination(each) for each in found}
        named_events = [each for each in found if named[id(each)]]
        made = [self._of_event(each, str(named[id(each)]), now) for each in named_events]
        new = self._store(made, now)
        self.store.owed_notifications.remove_marks(found)
        self._dispatch(new, now)
        return looked_at == EVENTS_A_PAGE

    def paused(self, schedule: Schedule, reason: str, now: datetime) -> None:
        """Tells the schedule's `on_failure` once that this revision of it was paused, and why.

        It may be called again after any fault, and is one message all the same: its id is derived from the
        schedule's id and revision. Does nothing for a schedule without `on_failure`. Raises a STORE_FAULT.
        """
        if schedule.on_failure is None:
            return
        told = {
            "schedule": {
                "id": name_of(schedule.id),
                "name": schedule.name,
                "state": schedule.state.value,
                "reason": reason,
                "paused_at": shown_instant(schedule.revised_at),
            }
        }
        suffix = f"-{schedule.revision}-on-pause"
        made = notification(
            *(schedule.id, suffix, PAUSED, told, now),
            destination=schedule.on_failure,
            retry=self._retry,
            hops=schedule.hops,
        )
        self.send([made], now)

    def send(self, messages: Sequence[Event], now: datetime) -> None:
        """Stores messages, and dispatches those that were not there already. Raises a STORE_FAULT."""
        self._dispatch(self._store(messages, now), now)

    @property
    def _retry(self) -> RetryPolicy:
        return RetryPolicy(max_retries=self.max_retries)

    def _destination(self, owing: EventOwingNotification) -> str | None:
        """The destination to notify; None if the deliverable no longer names one."""
        if owing.owed.destination is not None:
            return owing.owed.destination
        if is_message(owing.event.id):
            return owing.own.get(owing.owed.when)
        found = self.store.schedules.for_delivery([owing.event.schedule_id]).get(owing.event.schedule_id)
        return getattr(found, owing.owed.when.value) if isinstance(found, Schedule) else None

    def _of_event(self, owing: EventOwingNotification, destination: str, now: datetime) -> Event:
        when = owing.owed.when
        # An event that was sent again tells of its next end, too; the mark says which end it is.
        again = f"-{round(owing.owed.since.timestamp() * 1000)}" if owing.redriven else ""
        return notification(
            *(owing.event.id, _WORDS[when] + again, SUBJECTS[when], _notification_body(owing), now),
            destination=destination,
            retry=self._retry,
            hops=owing.owed.hops,
        )

    def _store(self, messages: Sequence[Event], now: datetime) -> Sequence[Event]:
        """Returns those that were not there already."""
        stored = self.store.messages.insert_many(messages, now)
        return [message for message, record in zip(messages, stored, strict=True) if record is not None]

    def _dispatch(self, new: Sequence[Event], now: datetime) -> None:
        if new:
            log.info("notify.made", message="Notifications were made", count=len(new))
            self.dispatch(new, now)


def _notification_body(owing: EventOwingNotification) -> Mapping[str, Any]:
    """The body of the message: the event, its attempts, and the beginning of the last answer."""
    event = owing.event
    attempts = [_attempt_line(each) for each in event.attempts]
    last = event.attempts[-1] if event.attempts else AttemptEntry()
    own = (
        {"message_id": message_id_of(event.id)}
        if is_message(event.id)
        else {"schedule_id": name_of(event.schedule_id)}
    )
    return {
        "event": {
            "id": event.id,
            **own,
            "kind": event.kind.value,
            "state": _STATES[owing.owed.when],
            "run_time": shown_instant(event.run_time),
            "created_at": shown_instant(event.created_at),
            "ended_at": shown_instant(owing.owed.since),
            "attempt": event.attempt,
            "message": next((each.get("message") for each in reversed(event.status)), None),
        },
        "attempts": attempts,
        "answer": last.get("snippet") or last.get("output", "")[:MAX_OUTPUT],
    }


def _attempt_line(line: AttemptEntry) -> dict[str, Any]:
    """A line of the history as the API shows it, without what a command has printed."""
    return {
        name: shown_instant(value) if isinstance(value, datetime) else value
        for name, value in line.items()
        if name not in ("output", "claim")
    }
