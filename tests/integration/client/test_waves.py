"""Backfills and the backlog in the clients and in the terminal."""

import asyncio
from datetime import UTC, datetime

from scheduler_app.client import AsyncScheduler, Scheduler
from tests.integration.client.conftest import KEY
from tests.integration.client.test_commands import Shell, shell

__all__ = ["shell"]

URL, OTHER = "http://waves.example/", "http://no-waves.example/"
HOURLY = "DTSTART:20260101T000000Z\nRRULE:FREQ=HOURLY"
SPAN = ("--from", "2026-01-02T00:00:00Z", "--to", "2026-01-02T09:00:00Z")


def test_a_backfill_is_started_watched_and_cancelled(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    made = scheduler.schedule(URL, rrule=HOURLY, id=tag).id
    said = shell.run("backfill", "start", made, *SPAN, "--dry-run").stdout
    assert said.startswith("running, only tried: 2026-01-02T00:00:00Z to 2026-01-02T09:00:00Z")
    found = scheduler.backfill(
        made, after=datetime(2026, 1, 2, tzinfo=UTC), until="2026-01-02T09:00:00Z", rate_per_second=2
    )
    assert (found.occurrences, found.seconds_left, found.since.day) == (10, 5, 2)
    assert shell.json("backfill", "show", made)["state"] == "running"

    async def watched() -> tuple[str, str]:
        async with AsyncScheduler(url_of(shell), KEY) as other:
            return (await other.get_backfill(made)).state, (await other.cancel_backfill(made)).state

    assert asyncio.run(watched()) == ("running", "cancelled")
    assert shell.run("backfill", "cancel", made).stdout.startswith("cancelled")


def test_the_backlog_is_shown_counted_and_given_up(shell: Shell, scheduler: Scheduler) -> None:
    assert scheduler.backlog().count >= 0
    assert "late" in shell.run("backlog", "show").stdout
    # The hourly schedule above may fall due meanwhile, which nobody sends here.
    assert scheduler.expire_backlog(origin=OTHER) == 0
    assert shell.run("backlog", "expire", "--origin", OTHER, "--dry-run").stdout == (
        "0 late events would be expired\n"
    )
    assert "give a filter" in shell.run("backlog", "expire", status=64).output


def url_of(shell: Shell) -> str:
    return shell._environment["SCHEDULER_URL"]
