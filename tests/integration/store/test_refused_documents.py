"""A document that MongoDB refuses is an error; it must not be taken for one that exists already."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from pymongo.errors import BulkWriteError

from scheduler_app.domain.blackout import Blackout
from scheduler_app.domain.calendars import Calendar, NamedCalendar, NamedDate
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.ids import TENANT, WholeId
from scheduler_app.domain.kill_switch import KillSwitch, Scope, Target
from scheduler_app.store import Store
from tests.builders import event, message, notification_rule, schedule, silence

URL = "http://127.0.0.1:9/"
TAG = Target(TENANT, Scope.TAG, "billing")
Insert = Callable[[Store, datetime], Any]


def insert_blackout(store: Store, now: datetime) -> Any:
    start = f"DTSTART:{now:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=YEARLY"
    hour = timedelta(hours=1)
    return store.blackouts.put(Blackout.of("b", TAG, {"rrule": start}, hour, "postpone", now, timezone="UTC"))


def insert_calendar(store: Store, now: datetime) -> Any:
    closed = Calendar(dates=(NamedDate(now.date()),))
    return store.calendars.insert(NamedCalendar(TENANT, "shop", closed, now, now))


INSERTS: dict[str, tuple[str, Insert]] = {
    "an event": ("events", lambda store, now: store.events.insert([event(now)], now, "made")),
    "a message": ("events", lambda store, now: store.messages.insert(message(now), now)),
    "messages": ("events", lambda store, now: store.messages.insert_many([message(now)], now)),
    "a schedule": ("schedules", lambda store, now: store.schedules.insert(schedule(now))),
    "schedules": ("schedules", lambda store, now: store.schedules.insert_many([schedule(now)])),
    "a destination": (
        "destinations",
        lambda store, now: store.destinations.insert(
            Destination(id=WholeId("d"), url=URL, created_at=now, updated_at=now)
        ),
    ),
    "a calendar": ("calendars", insert_calendar),
    "a blackout": ("blackouts", insert_blackout),
    "a notification": (
        "notifications",
        lambda store, now: store.notification_rules.put(notification_rule(now)),
    ),
    "a silence": ("silences", lambda store, now: store.silences.put(silence(now))),
    "a kill switch": ("kill_switches", lambda store, now: store.kill_switches.insert(KillSwitch(TAG, now))),
}


@pytest.mark.parametrize(("collection", "insert"), INSERTS.values(), ids=INSERTS.keys())
def test_what_mongodb_refuses_is_an_error(
    store: Store, now: datetime, collection: str, insert: Insert
) -> None:
    if collection not in store.mongo.collection(collection).database.list_collection_names():
        store.mongo.command("create", collection)
    store.mongo.command("collMod", collection, validator={"never": True})
    with pytest.raises(BulkWriteError, match="failed validation"):
        insert(store, now)
    assert not list(store.mongo.collection(collection).find())
