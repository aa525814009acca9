"""Notifications and silences, by the client and by the commands."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler_app.client import Scheduler, SchedulerError
from tests.integration.client.test_apply import Files, counts
from tests.integration.client.test_operating import Shell

URL = "https://example.com/alerts"


@pytest.fixture
def shell(url: str) -> Shell:
    return Shell(url)


@pytest.fixture(autouse=True)
def nothing_is_left(scheduler: Scheduler, tag: str) -> Iterator[None]:
    """Also where a test failed: it would be in the exports of others."""
    yield
    for each in scheduler.notifications():
        if each["name"] == tag:
            scheduler.delete_notification(tag)
    for each in scheduler.silences():
        if each["name"] == tag:
            scheduler.delete_silence(tag)


def test_a_notification_is_set_listed_tested_and_deleted(
    shell: Shell, scheduler: Scheduler, tag: str
) -> None:
    options = ("--webhook", URL, "--tag", "customer:*", "--after", "2m", "--remind", "4h", "--on", "failing")
    made = shell.json("notification", "set", tag, *options)
    assert made["result"] == "created"
    assert made["signing_secret"].startswith("whsec_")
    found = scheduler.get_notification(tag)
    assert (found["on"], found["match"]) == (["failing"], {"tags": ["customer:*"]})
    assert (found["after_seconds"], found["remind_seconds"]) == (120, 14_400)
    assert found["to"] == [{"type": "webhook", "url": URL}]
    assert "tag customer:*" in shell.run("notification", "list").stdout
    [message] = scheduler.test_notification(tag)
    assert scheduler.messages.get(message).event_name == "test"
    assert "made the message" in shell.run("notification", "test", tag).stdout
    shell.run("notification", "delete", tag)
    with pytest.raises(SchedulerError, match="no notification"):
        scheduler.delete_notification(tag)


def test_the_hours_of_a_notification_are_options(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    options = ("--hours", "every weekday at 8:00", "--hours-for", "10h", "--hours-tz", "Europe/Zurich")
    shell.json("notification", "set", tag, "--webhook", URL, *options)
    found = scheduler.get_notification(tag)["hours"]
    assert found["phrase"] == "every weekday at 8:00"
    assert (found["timezone"], found["duration_seconds"]) == ("Europe/Zurich", 36_000)
    for given in (("--hours", "every day at 8:00"), ("--hours-for", "1h"), ("--hours-tz", "UTC")):
        wrong = shell.run("notification", "set", tag, "--webhook", URL, *given, status=64)
        assert "--hours and --hours-for" in wrong.stderr


def test_a_silence_is_set_listed_and_deleted(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    shell.run("silence", "set", tag, "--for", "2h", "--reason", "an upgrade", "--destination", "erp")
    [found] = [each for each in scheduler.silences() if each["name"] == tag]
    assert (found["reason"], found["match"]) == ("an upgrade", {"destinations": ["erp"]})
    assert "an upgrade" in shell.run("silence", "list").stdout
    shell.run("silence", "delete", tag)
    with pytest.raises(SchedulerError, match="no silence"):
        scheduler.delete_silence(tag)


def test_a_file_makes_a_notification_once(
    shell: Shell, scheduler: Scheduler, tmp_path: Path, tag: str
) -> None:
    files = Files(shell, tmp_path, tag)
    ops = {"name": tag, "to": [{"type": "webhook", "url": URL}], "match": {"tags": ["customer:*"]}}
    files.write({"notifications": [ops]})
    assert counts(files.plan()) == {"created": 1}
    assert counts(files.apply()) == {"created": 1}
    before = scheduler.get_notification(tag)
    assert before["match"] == {"tags": ["customer:*"]}
    assert counts(files.plan(status=0)) == counts(files.apply()) == {"unchanged": 1}
    assert scheduler.get_notification(tag)["created_at"] == before["created_at"]
    files.write({"notifications": [ops | {"after_seconds": 5}]})
    assert counts(files.apply()) == {"changed": 1}
    assert scheduler.get_notification(tag)["after_seconds"] == 5
    exported = shell.run("export", "--everything").stdout
    assert f"- name: {tag}" in exported
    assert "whsec_" not in exported
