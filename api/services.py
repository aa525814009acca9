"""What the routes call: the use cases, put together for one process."""

from dataclasses import dataclass
from datetime import datetime

from flask import current_app

from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.dispatch import Dispatch
from scheduler_app.domain.event import Event
from scheduler_app.expansion import Expansion
from scheduler_app.manager import Manager
from scheduler_app.presence import Presence
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.tasks import CeleryPublisher
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)


@dataclass(frozen=True)
class Services:
    settings: Settings
    store: Store
    manager: Manager
    publisher: CeleryPublisher
    presence: Presence

    @staticmethod
    def now() -> datetime:
        return clock.now()


def make_services(settings: Settings, publisher: CeleryPublisher) -> Services:
    """Connects nothing yet. Raises InvalidField for an unusable SECRETS_KEY."""
    store = Store(settings)
    expansion = Expansion(store, timeframe_seconds=settings.timeframe_seconds)
    dispatch = Dispatch(store, publisher, horizon_seconds=settings.horizon_seconds)
    faults = (*STORE_FAULTS, *publisher.unavailable)

    def soon(schedule_id: str, now: datetime) -> None:
        # What was asked for is written. The rest beat does as well, a tick later: its failure is no error.
        try:
            dispatch.dispatch_these(expansion.expand_one(schedule_id, now).events, now)
        except faults as error:
            log.warning(
                "schedule.left_to_beat",
                message="A schedule was written; its first events are left to beat",
                schedule_id=schedule_id,
                error=str(error)[:300],
            )

    def send(event: Event, now: datetime) -> None:
        try:
            dispatch.dispatch_these([event], now)
        except faults as error:
            log.warning(
                "event.left_to_beat",
                message="An event was written; sending it is left to beat",
                event_id=event.id,
                error=str(error)[:300],
            )

    manager = Manager(
        store=store,
        owed=expansion.expand_up_to,
        soon=soon,
        send=send,
        max_retries=settings.worker_max_retries,
    )
    return Services(settings, store, manager, publisher, Presence(store, clock, "api"))


def services() -> Services:
    """The services of the application at hand."""
    found: Services = current_app.extensions["scheduler"]
    return found
