"""Pauses, kill switches and blackouts, by the client and by the commands."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.client import Scheduler, SchedulerError
from tests.integration.client.test_commands import YEARLY, Shell

URL = "https://example.com/backup"
FAR = datetime(2040, 1, 1, tzinfo=UTC)


@pytest.fixture
def shell(url: str) -> Shell:
    return Shell(url)


@pytest.fixture(autouse=True)
def nothing_is_left_stopped(scheduler: Scheduler, tag: str) -> Iterator[None]:
    """Also where a test failed: what it stopped would be in the exports and forecasts of others."""
    yield
    for switch in scheduler.kill_switches():
        if switch.tag == tag:
            scheduler.kill_switch_off(tag=tag)
    for each in scheduler.blackouts():
        if each["name"] == tag:
            scheduler.delete_blackout(tag)


def test_a_pause_has_an_end_and_a_note(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    made = scheduler.schedule(URL, rrule=YEARLY, tags=[tag])["id"]
    paused = scheduler.pause(made, until=FAR, note="why")
    assert (paused.paused_until, paused.note, paused.reason) == (FAR, "why", "by request")
    shell.json("pause", made, "--for", "2h")
    left = scheduler.get(made).paused_until
    assert left is not None
    assert timedelta(minutes=119) < left - datetime.now(UTC) <= timedelta(hours=2)
    scheduler.resume(made)
    result = scheduler.pause_many(tag=tag, until=FAR, note="all")
    assert result.count == 1
    assert scheduler.get(made).note == "all"
    scheduler.resume(made)
    shell.run("pause", "--tag", tag, "--until", "2040-01-01T00:00:00Z", "--note", "by hand", "--yes")
    assert scheduler.get(made).paused_until == FAR
    shell.run("pause", made, "--until", "2040-01-01T00:00:00Z", "--for", "2h", status=64)


def test_a_kill_switch_is_turned_on_and_off(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    scheduler.schedule(URL, rrule=YEARLY, tags=[tag])
    on = scheduler.kill_switch_on(tag=tag, note="why")
    assert (on.tag, on.note, on["stopped"]["schedules"]) == (tag, "why", 1)
    assert [each.tag for each in scheduler.kill_switches() if each.tag == tag] == [tag]
    assert f"tag {tag}" in shell.run("kill-switch", "list").stdout
    assert scheduler.kill_switch_off(tag=tag) == 0
    with pytest.raises(SchedulerError, match="is not on"):
        scheduler.kill_switch_off(tag=tag)
    with pytest.raises(ValueError, match="give one of"):
        scheduler.kill_switch_on()
    said = shell.run("kill-switch", "on", "--tag", tag).stdout
    assert f"tag {tag} is stopped: 1 active schedule, " in said
    assert shell.json("kill-switch", "off", "--tag", tag) == {"held": 0}
    shell.run("kill-switch", "on", "--all", "--tag", tag, status=64)


@pytest.mark.parametrize("options", [(), ("--everything",)], ids=["as-lines", "as-a-file"])
def test_an_export_names_the_kill_switches_that_it_leaves_out(
    shell: Shell, scheduler: Scheduler, tag: str, options: tuple[str, ...]
) -> None:
    scheduler.schedule(URL, rrule=YEARLY, tags=[tag])
    command = ("export", *options, "--tag", tag)
    assert "kill switch" not in shell.run(*command).stderr
    scheduler.kill_switch_on(tag=tag)
    said = shell.run(*command)
    assert f"left out: the kill switch that stops tag {tag};" in said.stderr
    assert "kill switch" not in said.stdout


def test_a_blackout_is_set_listed_and_deleted(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    options = ("--cron", "0 22 * * *", "--timezone", "Europe/Zurich", "--lasts", "8h", "--tag", tag)
    found = shell.json("blackout", "set", tag, *options, "--policy", "skip")
    assert (found["duration_seconds"], found["policy"], found["tag"]) == (28_800, "skip", tag)
    assert tag in shell.run("blackout", "list").stdout
    assert [each["name"] for each in scheduler.blackouts() if each["name"] == tag] == [tag]
    made = scheduler.schedule(URL, rrule="DTSTART:20400102T210000Z\nRRULE:FREQ=DAILY", tags=[tag])["id"]
    (first, second) = scheduler.occurrences(made, limit=2).occurrences
    assert (first.run_time, second.run_time - first.run_time) == (
        FAR + timedelta(hours=45),
        timedelta(days=1),
    )
    assert first.blackout is not None
    assert (first.blackout["name"], first.blackout["policy"]) == (tag, "skip")
    assert f"skipped by the blackout {tag}" in shell.run("next", made, "--limit", "1").stdout
    shell.run("blackout", "set", tag, *options)
    until = "2040-01-03T05:00:00Z"
    said = " ".join(shell.run("next", made, "--limit", "1").stdout.split())
    assert f"postponed to {until} by the blackout {tag}" in said
    shell.run("blackout", "delete", tag)
    with pytest.raises(SchedulerError, match="no blackout"):
        scheduler.delete_blackout(tag)


def test_the_command_says_what_a_kill_switch_stops_and_warns_where_that_is_nothing(
    shell: Shell, scheduler: Scheduler, tag: str
) -> None:
    done = shell.run("kill-switch", "on", "--tag", tag)
    assert f"tag {tag} is stopped: 0 active schedules, 0 waiting events" in done.stdout
    assert f"Warning: no active schedule has the tag {tag}" in done.stderr
    scheduler.trigger(scheduler.schedule(URL, rrule=YEARLY, tags=[tag])["id"])
    done = shell.run("kill-switch", "on", "--tag", tag)
    assert f"tag {tag} is stopped: 1 active schedule, 1 waiting event" in done.stdout
    assert not done.stderr
