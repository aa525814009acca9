"""The forecast in the clients and in the terminal."""

import asyncio
import json
from datetime import UTC, datetime

import pytest

from scheduler_app.cli.commands.occurrences import BAR_WIDTH, bar
from scheduler_app.client import AsyncScheduler, Forecast, Scheduler
from tests.integration.client.conftest import KEY
from tests.integration.client.test_commands import Shell, shell

__all__ = ["shell"]

URL = "http://forecast.example/"
HOURLY = "DTSTART:20440305T000000Z\nRRULE:FREQ=HOURLY;COUNT=30"
SPAN = ("--from", "2044-03-05T00:00:00Z", "--for", "3h", "--bucket", "1h")


@pytest.fixture(autouse=True)
def schedules(scheduler: Scheduler, tag: str) -> None:
    for number in range(2):
        rule = HOURLY if number else HOURLY.replace("T000000Z", "T020000Z")
        scheduler.schedule(URL, rrule=rule, tags=[tag])


def test_it_is_drawn_as_bars(shell: Shell) -> None:
    drawn = shell.run("forecast", *SPAN).stdout.splitlines()
    times = [f"2044-03-05T0{hour}:00:00Z" for hour in range(3)]
    rows = [line.split() for line in drawn if line.startswith("2044")]
    assert [row[0] for row in rows] == times
    counts = [int(row[1]) for row in rows]
    assert [len(row[2]) for row in rows] == [len(bar(count, max(counts))) for count in counts]
    answer = json.loads(shell.run("forecast", *SPAN, "--json").stdout)
    assert counts == [bucket["count"] for bucket in answer["buckets"]]
    assert min(counts[1:]) > 0
    assert any(line.endswith("http://forecast.example:80") for line in drawn)


def test_it_is_of_one_tag_alone(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    scheduler.schedule("http://else.example/", rrule=HOURLY, tags=["else"])
    answer = json.loads(shell.run("forecast", *SPAN, "--tag", tag, "--json").stdout)
    assert [bucket["count"] for bucket in answer["buckets"]] == [1, 1, 2]
    assert [each["origin"] for each in answer["receivers"]] == ["http://forecast.example:80"]
    start, end = datetime(2044, 3, 5, tzinfo=UTC), "2044-03-05T03:00:00Z"
    assert scheduler.forecast(after=start, until=end, tag=tag).count == 4


def test_a_bar_is_as_long_as_its_share() -> None:
    assert bar(0, 10) == bar(0, 0) == ""
    assert bar(10, 10) == "█" * BAR_WIDTH
    assert bar(5, 10) == "█" * (BAR_WIDTH // 2)
    assert bar(1, 1_000_000) == "▏"


def test_the_clients_return_it_typed(scheduler: Scheduler, url: str) -> None:
    start, end = datetime(2044, 3, 5, tzinfo=UTC), "2044-03-05T03:00:00Z"
    found = scheduler.forecast(after=start, until=end, bucket_seconds=3600)
    assert [part.start.hour for part in found.buckets] == [0, 1, 2]
    assert found.count == sum(part.count for part in found.buckets)
    # Other tests' schedules are in it too, and some of theirs have the times at which they were made.
    assert found.busiest == max(found.buckets, key=lambda part: part.count)
    (ours,) = [each for each in found["receivers"] if each.get("origin") == "http://forecast.example:80"]
    first, second, third = ours["counts"]
    assert third == first + second > first == second > 0
    assert (found.sampled, found.notes) == (False, ())

    async def asked() -> object:
        async with AsyncScheduler(url, KEY) as other:
            return await other.forecast(after=start, until=end, bucket_seconds=3600)

    # Other tests' schedules may come in between.
    other = asyncio.run(asked())
    assert isinstance(other, Forecast)
    assert [part.start for part in other.buckets] == [part.start for part in found.buckets]
    assert other.count > 0
