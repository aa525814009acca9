"""Calendars and blackouts that got names from an older release which look like steps in a path."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.cli.apply.files import exported_pieces
from scheduler_app.client import AsyncScheduler, Scheduler, SchedulerError
from scheduler_app.config import Settings
from scheduler_app.domain.blackout import Blackout
from scheduler_app.domain.calendars import Calendar, NamedCalendar
from scheduler_app.domain.ids import TENANT, WholeId
from scheduler_app.domain.kill_switch import Scope, Target
from scheduler_app.embedded import Mongod
from scheduler_app.store import Store
from tests.integration.client.conftest import KEY

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
WINDOW: dict[str, Any] = {"cron": "0 22 * * *", "duration_seconds": 600, "tag": "other"}


@pytest.fixture(params=["..", ".", "-x", "_"])
def name(request: pytest.FixtureRequest, mongod_server: Mongod, database_name: str) -> Iterator[str]:
    """A name that a calendar and a blackout have."""
    found: str = request.param
    store = Store(Settings(mongo_uri=mongod_server.uri, mongo_database=database_name))
    store.calendars.insert(NamedCalendar(TENANT, found, Calendar(weekend=(6,)), NOW, NOW))
    target = Target(TENANT, Scope.TAG, "nothing-has-it")
    cron = {"cron": WINDOW["cron"]}
    store.blackouts.put(
        Blackout.of(found, target, cron, timedelta(minutes=10), "postpone", NOW, timezone="UTC")
    )
    yield found
    store.mongo.collection("calendars").delete_many({})
    store.blackouts.delete(WholeId(found))
    store.close()


def test_they_are_read_edited_and_deleted(scheduler: Scheduler, name: str) -> None:
    assert scheduler.calendars.get(name)["name"] == name
    assert scheduler.calendars.put(name, {"weekend": ["SA"]})["name"] == name
    assert len(scheduler.calendars.days(name, date(2026, 3, 1), date(2026, 3, 8))) == 1
    scheduler.calendars.delete(name)
    assert scheduler.get_blackout(name)["name"] == name
    assert scheduler.put_blackout(name, WINDOW)["tag"] == "other"
    scheduler.delete_blackout(name)


async def _read(url: str, name: str) -> tuple[str, str]:
    async with AsyncScheduler(url, KEY) as scheduler:
        return (await scheduler.calendars.get(name))["name"], (await scheduler.get_blackout(name))["name"]


def test_the_asynchronous_client_reads_them(url: str, name: str) -> None:
    assert asyncio.run(_read(url, name)) == (name, name)


def test_an_export_of_everything_has_them(scheduler: Scheduler, name: str) -> None:
    text = "".join(piece for piece, _ in exported_pieces(scheduler, []))
    assert "nothing-has-it" in text
    assert text.count(name) >= 2


@pytest.mark.parametrize("name", ["..", ".", "-x", "x-", "_", "x."])
def test_nothing_new_gets_such_a_name(scheduler: Scheduler, name: str) -> None:
    for put in (
        lambda: scheduler.calendars.put(name, {"weekend": ["SA"]}),
        lambda: scheduler.put_blackout(name, WINDOW),
    ):
        with pytest.raises(SchedulerError, match="begin and end with a letter or digit"):
            put()


@pytest.mark.parametrize("name", ["-", "-x", "x-"])
def test_no_new_destination_gets_such_a_name(scheduler: Scheduler, name: str) -> None:
    with pytest.raises(SchedulerError, match="begin and end with a letter or digit"):
        scheduler.destinations.put(name, url="https://example.com/")
