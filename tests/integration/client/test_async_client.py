"""The client for asyncio: it is the twin of the other one, against the same API."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from scheduler_app.client import AsyncScheduler, Event, Schedule, SchedulerError, calls, tries
from scheduler_app.domain.masking import MASK
from tests.integration.actions.receiver import Behaviour, Receiver, Seen, hangs, says, writes
from tests.integration.client.conftest import KEY
from tests.processes import wait_until

T = TypeVar("T")
URL = "https://example.com/backup"
YEARLY = "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY"
MADE = says("201 Created", body=b'{"id": "s1", "state": "active", "event_id": "e1"}')
BUSY = says("503 Service Unavailable", "Retry-After: 0", body=b'{"detail": "the database does not answer"}')
GONE = says("404 Not Found", body=b'{"detail": "there is no schedule"}')
DROPS = writes()

Run = Callable[[Callable[[AsyncScheduler], Awaitable[Any]]], Any]


@pytest.fixture
def run(url: str) -> Run:
    """Runs a coroutine function with a client of the API."""

    async def running(steps: Callable[[AsyncScheduler], Awaitable[T]]) -> T:
        async with AsyncScheduler(url, KEY) as scheduler:
            return await steps(scheduler)

    return lambda steps: asyncio.run(running(steps))


async def all_of(rows: AsyncIterator[T]) -> list[T]:
    return [row async for row in rows]


def test_a_schedule_is_made_found_listed_and_cancelled(run: Run, tag: str) -> None:
    async def steps(scheduler: AsyncScheduler) -> None:
        made = await scheduler.schedule(URL, rrule=YEARLY, name="Backup", tags=[tag], json={"full": True})
        assert made.next_run_at == datetime(2040, 1, 1, tzinfo=UTC)
        assert made["next_run_at"] == "2040-01-01T00:00:00Z"
        assert (await scheduler.get(made.id)).json == MASK
        assert [one.id async for one in scheduler.list(tag=tag, state="active")] == [made.id]
        assert [line["tags"] async for line in scheduler.export(tag=tag)] == [[tag]]
        assert (await scheduler.put(made.id, {"name": "Other"})).result == "changed"
        assert (await scheduler.update(made.id, name="Third")).name == "Third"
        assert (await scheduler.pause(made.id)).state == "paused"
        assert (await scheduler.resume(made.id)).state == "active"
        await scheduler.cancel(made.id)
        assert await scheduler.find(made.id) is None
        assert await all_of(scheduler.list(tag=tag)) == []

    run(steps)


def test_lists_and_edits_of_many_go_page_by_page(run: Run, tag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_A_PAGE", 2)

    async def steps(scheduler: AsyncScheduler) -> None:
        given = [{"name": "n", "callback_url": URL, "rrule": YEARLY, "tags": [tag]} for _ in range(5)]
        results = await scheduler.schedule_many(given)
        assert [each.status for each in results] == [201] * 5
        assert {one.id async for one in scheduler.list(tag=tag)} == {each.id for each in results}
        assert (await scheduler.pause_many(tag=tag, dry_run=True)).count == 5
        assert await scheduler.pause_many(tag=tag) == {"paused": 5, "skipped": []}
        assert len((await scheduler.pause_many(tag=tag)).skipped) == 5
        assert (await scheduler.resume_many(tag=tag)).count == 5
        assert (await scheduler.delete_many(tag=tag))["deleted"] == 5

    run(steps)


def test_events_are_read_and_cancelled(run: Run) -> None:
    async def steps(scheduler: AsyncScheduler) -> None:
        made = await scheduler.schedule(URL, delay=timedelta(days=1))
        event_id = await scheduler.trigger(made.id)
        event = await scheduler.event(event_id)
        assert (event.id, event["_id"], event.schedule_id) == (event_id, event_id, made.id)
        assert isinstance(event.run_time, datetime)
        assert event_id in [each.id async for each in scheduler.pending(made.id)]
        cancelled = await scheduler.cancel_event(event_id)
        assert (cancelled.state, cancelled.status[-1].status) == ("cancelled", "cancelled")
        found = await all_of(scheduler.events(state="cancelled", schedule_id=made.id))
        assert [each.id for each in found] == [event_id]
        history = await all_of(scheduler.history(made.id, include_cancelled=True))
        assert [each.id for each in history] == [event_id]
        with pytest.raises(SchedulerError, match="409"):
            await scheduler.redrive(event_id)
        assert (await scheduler.redrive_many(schedule_id=made.id)).count == 0

    run(steps)


def test_a_preview_has_instants_and_local_times(run: Run) -> None:
    async def steps(scheduler: AsyncScheduler) -> None:
        at = datetime(2040, 7, 1, 9)  # noqa: DTZ001
        found = await scheduler.preview(run_at=at, timezone="Europe/Zurich")
        assert [each.run_time for each in found.occurrences] == [datetime(2040, 7, 1, 7, tzinfo=UTC)]
        assert found.occurrences[0].local.utcoffset() == timedelta(hours=2)

    run(steps)


def test_a_refusal_carries_the_status_the_sentence_and_the_fields(run: Run) -> None:
    async def steps(scheduler: AsyncScheduler) -> None:
        with pytest.raises(SchedulerError) as caught:
            await scheduler.schedule(URL, rrule="FREQ=SOMETIMES")
        assert caught.value.status == 422
        assert [field["pointer"] for field in caught.value.errors] == ["/rrule"]
        with pytest.raises(ValueError, match="give one of"):
            await scheduler.schedule(URL)
        with pytest.raises(SchedulerError, match="404"):
            await scheduler.get("x/../y")

    run(steps)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Receiver]]:
    """Makes a server that behaves so, one request after the other; the last for all that follow."""
    monkeypatch.setattr(tries, "_FIRST_DELAY_SECONDS", 0.001)
    made: list[Receiver] = []

    def serve(*behaviours: Behaviour) -> Receiver:
        script = list(behaviours)

        def behave(seen: Seen, connection: Any) -> bool:
            return (script.pop(0) if len(script) > 1 else script[0])(seen, connection)

        made.append(Receiver(behave))
        return made[-1]

    yield serve
    for receiver in made:
        receiver.close()


def with_client(
    receiver: Receiver, steps: Callable[[AsyncScheduler], Awaitable[T]], timeout: float = 60
) -> T:
    async def running() -> T:
        async with AsyncScheduler(f"http://127.0.0.1:{receiver.port}", "a key", timeout=timeout) as scheduler:
            return await steps(scheduler)

    return asyncio.run(running())


@pytest.mark.parametrize("failure", [BUSY, DROPS])
def test_a_post_is_sent_again_under_the_same_key(server: Callable[..., Receiver], failure: Behaviour) -> None:
    receiver = server(failure, failure, MADE)
    made = with_client(receiver, lambda scheduler: scheduler.schedule(URL, rrule="FREQ=DAILY"))
    assert made.id == "s1"
    assert len(receiver.seen) == 3
    assert len({(seen.headers["idempotency-key"], seen.body) for seen in receiver.seen}) == 1
    assert {seen.headers["authorization"] for seen in receiver.seen} == {"Bearer a key"}


def test_connections_are_used_again(server: Callable[..., Receiver]) -> None:
    receiver = server(MADE)

    async def steps(scheduler: AsyncScheduler) -> None:
        for _ in range(5):
            await scheduler.trigger("s1")

    with_client(receiver, steps)
    assert (len(receiver.seen), receiver.connections) == (5, 1)


def test_a_deletion_whose_answer_was_lost_succeeded(server: Callable[..., Receiver]) -> None:
    with_client(server(DROPS, GONE), lambda scheduler: scheduler.cancel("s1"))
    with pytest.raises(SchedulerError, match="404"):
        with_client(server(GONE), lambda scheduler: scheduler.cancel("s1"))


def test_a_server_that_never_answers_is_given_up(server: Callable[..., Receiver]) -> None:
    receiver = server(hangs)
    with pytest.raises(SchedulerError, match="cannot be reached") as caught:
        with_client(receiver, lambda scheduler: scheduler.get("s1"), timeout=0.1)
    assert caught.value.status is None
    # The receiver may come to the last one after the client has given it up.
    wait_until(lambda: receiver.connections >= 4, "each of the tries")
    assert receiver.connections == 4


def test_a_redirect_does_not_carry_the_key_away(server: Callable[..., Receiver]) -> None:
    elsewhere = server(MADE)
    here = server(says("302 Found", f"Location: http://127.0.0.1:{elsewhere.port}/"))
    with pytest.raises(SchedulerError, match="302: not an answer of the API"):
        with_client(here, lambda scheduler: scheduler.get("s1"))
    assert elsewhere.seen == []


def test_an_export_is_read_line_by_line_whatever_is_in_the_texts(server: Callable[..., Receiver]) -> None:
    names = ["a\u2028b", "c\x85d", "e"]
    body = "\n".join(json.dumps({"name": name}, ensure_ascii=False) for name in names).encode()
    receiver = server(says(body=body))
    found = with_client(receiver, lambda scheduler: all_of(scheduler.export()))
    assert [line["name"] for line in found] == names


def test_what_is_no_address_is_told() -> None:
    async def steps(address: str) -> None:
        async with AsyncScheduler(address) as nowhere:
            await nowhere.get("x")

    for address in ("localhost:8080", "ftp://localhost", "http://localhost:port"):
        with pytest.raises(SchedulerError, match="give one such as http://"):
            asyncio.run(steps(address))
    with pytest.raises(SchedulerError, match=r"http://127.0.0.1:9 cannot be reached: .*refused|failed"):
        asyncio.run(steps("http://127.0.0.1:9"))


def test_without_httpx_only_the_asyncio_client_is_missing() -> None:
    script = (
        "import sys; sys.modules['httpx'] = None; import scheduler_app.client as client; client.Scheduler\n"
        "try: client.AsyncScheduler\n"
        "except ImportError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "pip install 'rrule-scheduler[async]'" in said


def test_results_are_read_like_the_json_they_were_and_show_no_secrets() -> None:
    answer = {
        "id": "a",
        "state": "active",
        "body": "swordfish",
        "signing_secret": "whsec_swordfish",
        "newer": 1,
    }
    schedule = Schedule.of(answer)
    assert (schedule["newer"], schedule.get("tags"), dict(schedule), schedule == answer) == (
        1,
        None,
        answer,
        True,
    )
    assert repr(schedule) == "Schedule(id='a', state='active')"
    with pytest.raises(AttributeError):
        schedule.state = "paused"  # type: ignore[misc]
    event = Event.of({"_id": "e", "attempts": [{"number": 1, "started_at": "2026-03-02T12:00:00Z"}]})
    assert event.attempts[0].started_at == datetime(2026, 3, 2, 12, tzinfo=UTC)
    assert (event.due_at, event.status) == (None, ())


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ([], "an object"),
        ({"state": "active"}, "lacks 'id'"),
        ({"id": "a", "state": "active", "tags": 1}, "'tags'"),
    ],
)
def test_an_answer_that_does_not_fit_is_told_with_its_field(answer: object, what: str) -> None:
    with pytest.raises(SchedulerError, match=what):
        Schedule.of(answer)
