"""What the routes call: the use cases, put together for one process."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from flask import current_app, g

from api import dry_run
from scheduler_app.actions.http import Guard, check_reachable, new_secret, parse_networks
from scheduler_app.broker import CeleryPublisher
from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.domain.event import Event
from scheduler_app.domain.masking import MASK
from scheduler_app.domain.owed import OwedRange
from scheduler_app.domain.ports import parse_ports
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.calendars import CalendarManager
from scheduler_app.usecases.creation import Creation
from scheduler_app.usecases.dispatch import Dispatch
from scheduler_app.usecases.events import EventManager
from scheduler_app.usecases.expansion import Expansion
from scheduler_app.usecases.heartbeat import Presence
from scheduler_app.usecases.schedules import Manager

log = get_logger(__name__)

IDS_IN_A_LINE = 10


@dataclass(frozen=True)
class Services:
    settings: Settings
    store: Store
    creation: Creation
    manager: Manager
    events: EventManager
    calendars: CalendarManager
    publisher: CeleryPublisher
    presence: Presence
    guard: Guard

    @staticmethod
    def now() -> datetime:
        return clock.now()

    def dry(self) -> "Services":
        """The same for one request that must change nothing: the store only judges, no secret is made, and
        nothing is expanded or dispatched."""
        store = self.store.dry_run()
        manager = replace(
            self.manager,
            store=store,
            owed=lambda schedule, until: None,
            soon=_do_nothing,
            send=_do_nothing,
            new_secret=lambda: MASK,
        )
        creation = replace(self.creation, store=store, soon=_do_nothing, new_secret=manager.new_secret)
        events = replace(self.events, store=store, send=_do_nothing)
        return replace(
            self,
            store=store,
            creation=creation,
            manager=manager,
            events=events,
            calendars=CalendarManager(store),
        )


def make_services(settings: Settings, publisher: CeleryPublisher) -> Services:
    """Connects nothing yet. Raises InvalidField for an unusable SECRETS_KEY."""
    store = Store(settings)
    expansion = Expansion(store, timeframe_seconds=settings.timeframe_seconds)
    dispatch = Dispatch(store, publisher, horizon_seconds=settings.horizon_seconds)
    faults = (*STORE_FAULTS, *publisher.unavailable)

    def soon(schedules: Sequence[Schedule], now: datetime) -> None:
        # Of many, those that cannot wait for beat's next tick; of one, all that beat would do with it: a cut
        # that an edit has left, and what the timeframe holds.
        ahead = settings.timeframe_seconds if len(schedules) == 1 else settings.horizon_seconds
        end = now + timedelta(seconds=ahead)
        near = [
            schedule.id
            for schedule in schedules
            if schedule.cut_pending or (schedule.next_run_at and schedule.next_run_at <= end)
        ]
        # What was asked for is written. The rest beat does as well, a tick later: its failure is no error.
        try:
            dispatch.dispatch_these(expansion.expand_these(near, now, end).events if near else [], now)
        except faults as error:
            log.warning(
                "schedule.left_to_beat",
                message="Schedules were written; their first events are left to beat",
                schedule_ids=near[:IDS_IN_A_LINE],
                count=len(near),
                error=str(error)[:300],
            )

    def owed(schedule: Schedule, until: datetime) -> OwedRange | None:
        before = expansion.expand_up_to(schedule, until)
        # All of it is due by now: left to a beat it would be late by up to a tick.
        send_each(before.events, until)
        return before.left

    def send(events: Sequence[Event], now: datetime) -> None:
        send_each(events, now, urgent=True)

    def send_each(events: Sequence[Event], now: datetime, *, urgent: bool = False) -> None:
        try:
            dispatch.dispatch_these(events, now, urgent=urgent)
        except faults as error:
            log.warning(
                "event.left_to_beat",
                message="Events were written; sending them is left to beat",
                event_ids=[event.id for event in events[:IDS_IN_A_LINE]],
                count=len(events),
                error=str(error)[:300],
            )

    guard = Guard(
        parse_networks(settings.callback_allowed_networks), parse_ports(settings.callback_denied_ports)
    )
    check_url = partial(check_reachable, guard=guard)
    creation = Creation(store, soon, settings.worker_max_retries, check_url, new_secret)
    manager = Manager(
        store=store,
        owed=owed,
        soon=soon,
        send=send,
        check_url=check_url,
        new_secret=new_secret,
    )
    presence = Presence(store, clock, "api")
    events, calendars = EventManager(store, send), CalendarManager(store)
    return Services(settings, store, creation, manager, events, calendars, publisher, presence, guard)


def services() -> Services:
    """The services of the application at hand; for a dry run, ones that change nothing."""
    if dry_run.asked():
        if "dry_services" not in g:
            g.dry_services = real_services().dry()
        made: Services = g.dry_services
        return made
    return real_services()


def real_services() -> Services:
    """Also in a dry run: for what belongs to the request itself, and not to what it asks for."""
    found: Services = current_app.extensions["scheduler"]
    return found


def _do_nothing(items: Sequence[Any], now: datetime) -> None:
    """Stands for expanding and dispatching in a dry run."""
