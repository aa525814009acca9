"""The client's destinations, and the commands for destinations and messages, against the API."""

import asyncio
import json
from typing import get_type_hints

import pytest
from click.testing import CliRunner

from scheduler_app.api.wire.destination import DestinationInput, DestinationOutput, FlowOutput
from scheduler_app.cli import main
from scheduler_app.client import (
    AsyncScheduler,
    Destination,
    DestinationFields,
    DestinationTest,
    Flow,
    Scheduler,
    SchedulerError,
)
from scheduler_app.domain.masking import MASK
from tests.integration.client.conftest import KEY
from tests.integration.client.test_commands import Shell

URL = "https://example.com/hook"
TOKEN = "a-secret-token"


@pytest.fixture
def shell(url: str) -> Shell:
    return Shell(url)


def test_a_destination_from_its_creation_to_its_end(scheduler: Scheduler, tag: str) -> None:
    doors = scheduler.destinations
    made = doors.put(tag, url=URL, rate_per_second=5, burst=2, auth={"type": "bearer", "token": TOKEN})
    assert isinstance(made, Destination)
    assert (made.name, made.result, made.rate_per_second, made.burst) == (tag, "created", 5, 2)
    assert made.auth == {"type": "bearer", "token": MASK}
    assert doors.put(tag, url=URL, rate_per_second=7, dry_run=True).rate_per_second == 7
    assert doors.update(tag, concurrency=3).concurrency == 3
    found = doors.get(tag)
    assert found.rate_per_second == 5
    assert isinstance(found.flow, Flow)
    assert (found.flow.breaker, found.flow.waiting) == ("closed", 0)
    assert doors.pause(tag).paused
    assert doors.resume(tag).paused is False
    assert tag in [each.name for each in doors.list()]
    doors.delete(tag)
    assert doors.find(tag) is None
    with pytest.raises(SchedulerError) as missing:
        doors.delete(tag)
    assert missing.value.status == 404


def test_the_asyncio_client_has_them_too(url: str, tag: str) -> None:
    async def steps() -> None:
        async with AsyncScheduler(url, KEY) as scheduler:
            doors = scheduler.destinations
            assert (await doors.put(tag, url=URL)).result == "created"
            assert (await doors.update(tag, method="PUT")).method == "PUT"
            assert (await doors.pause(tag)).paused
            assert (await doors.resume(tag)).paused is False
            assert tag in [each.name async for each in doors.list()]
            assert (await doors.get(tag)).url == URL
            await doors.delete(tag)
            assert await doors.find(tag) is None

    asyncio.run(steps())


def test_a_test_shows_what_the_receiver_answered(scheduler: Scheduler, tag: str) -> None:
    scheduler.destinations.put(tag, url="https://example.invalid/")
    done = scheduler.destinations.test(tag)
    assert isinstance(done, DestinationTest)
    assert (done.sent, done.outcome is None, done.status_code) == (True, False, None)


def test_every_field_of_the_api_is_an_argument_or_an_attribute() -> None:
    given = {field.data_key or name for name, field in DestinationInput().fields.items()}
    assert get_type_hints(DestinationFields).keys() == given
    assert get_type_hints(Destination).keys() - {"_json"} == DestinationOutput().fields.keys()
    assert get_type_hints(Flow).keys() - {"_json"} == FlowOutput().fields.keys()


def test_commands_for_destinations(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    options = (URL, "--rate-per-second", "2.5", "--header", "X-Team: ops", "--no-signing")
    breaker = ("--breaker", '{"failures": 5, "open_seconds": 30}')
    made = shell.json("destination", "set", tag, *options, *breaker, "--retry-code", "503")
    assert made["result"] == "created"
    assert made["breaker"] == {"failures": 5, "open_seconds": 30}
    assert (made["rate_per_second"], made["retry_codes"]) == (2.5, ["503"])
    changed = shell.json("destination", "set", tag, "--concurrency", "4")
    assert (changed["concurrency"], changed["rate_per_second"], changed["result"]) == (4, 2.5, "changed")
    shown = shell.run("destination", "list", "--limit", "100").stdout
    (line,) = [each for each in shown.splitlines() if each.startswith(tag)]
    assert "2.5/s, 4 at once" in line
    assert shell.json("destination", "get", tag)["flow"]["breaker"] == "closed"
    assert shell.json("destination", "pause", tag)["paused"]
    assert not shell.json("destination", "resume", tag)["paused"]
    assert shell.run("destination", "delete", tag).stdout == f"deleted {tag}\n"
    assert "there is no destination" in shell.run("destination", "get", tag, status=1).stderr


def test_credentials_come_by_standard_input_and_are_not_repeated(url: str, tag: str) -> None:
    def run(auth: str, given: str) -> str:
        arguments = ["destination", "set", tag, URL, "--auth", auth]
        environment = {"SCHEDULER_URL": url, "SCHEDULER_API_KEY": KEY}
        return CliRunner().invoke(main, arguments, input=given, env=environment).output

    shown = run("-", json.dumps({"type": "bearer", "token": TOKEN}))
    assert MASK in shown
    assert TOKEN not in shown
    refused = run(f'{{"token": {TOKEN}', "")
    assert "is not JSON" in refused
    assert TOKEN not in refused


def test_a_test_that_fails_exits_with_1(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    scheduler.destinations.put(tag, url="https://example.invalid/")
    assert "sent" in shell.run("destination", "test", tag, status=1).stdout


def test_commands_for_messages(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    options = ("--id", tag, "--event-name", tag, "--data", '{"order": 1}', "--metadata", "trace: t1")
    made = shell.json("message", "schedule", URL, "--at", "2040-01-05T12:00:00Z", *options)
    assert (made["id"], made["payload"], made["metadata"]) == (tag, MASK, {"trace": MASK})
    assert made["scheduled_at"] == "2040-01-05T12:00:00Z"
    scheduler.destinations.put(f"d-{tag}", url=URL)
    told = ("--destination", f"d-{tag}", "--on-failure", f"d-{tag}", "--max-retries", "2", "--path", "/x")
    other = shell.json("message", "schedule", *told, "--in", "2d", "--event-name", tag, "--body", "text")
    assert (other["on_failure"], other["max_retries"], other["path"]) == (f"d-{tag}", 2, "/x")
    heading, first, second = shell.run("message", "list", "--event-name", tag).stdout.splitlines()
    assert heading.split()[:2] == ["state", "id"]
    assert f"d-{tag}" in first
    assert URL in second
    listed = shell.json("message", "list", "--event-name", tag, "--after", "2039-01-01T00:00:00Z")
    assert [each["id"] for each in listed] == [tag]
    moved = shell.json("message", "reschedule", tag, "--at", "2041-01-01T00:00:00+01:00")
    assert moved["scheduled_at"] == "2040-12-31T23:00:00Z"
    assert shell.json("message", "get", tag)["state"] == "ready_queue"
    assert shell.json("message", "cancel", tag)["state"] == "cancelled"


@pytest.mark.parametrize(
    "arguments",
    [
        ("schedule",),
        ("schedule", URL, "--destination", "x"),
        ("schedule", URL, "--at", "2040-01-01T00:00:00"),
        ("schedule", URL, "--at", "soon"),
        ("schedule", URL, "--at", "2040-01-01T00:00:00Z", "--in", "5m"),
        ("schedule", URL, "--data", "{"),
        ("schedule", URL, "--metadata", "x"),
        ("reschedule", "x"),
    ],
)
def test_wrong_usage_is_told(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert "Error:" in shell.run("message", *arguments, status=64).stderr
