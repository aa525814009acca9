"""The client against a server that fails: what is sent again, and that it stays one request."""

import json
import socket
from collections.abc import Callable, Iterator

import pytest

from scheduler_app.client import Scheduler, SchedulerError, tries
from tests.integration.actions.receiver import Behaviour, Receiver, Seen, hangs, says, writes
from tests.processes import wait_until

URL = "https://example.com/backup"
MADE = says("201 Created", body=b'{"id": "s1", "state": "active", "event_id": "e1"}')
BUSY = says("503 Service Unavailable", "Retry-After: 0", body=b'{"detail": "the database does not answer"}')
IN_FLIGHT = says("409 Conflict", "Retry-After: 0", body=b'{"detail": "still being answered"}')
TAKEN = says("409 Conflict", body=b'{"detail": "the id was used before"}')
GONE = says("404 Not Found", body=b'{"detail": "there is no schedule"}')
DROPS = writes()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tries, "_FIRST_DELAY_SECONDS", 0.001)


@pytest.fixture
def server() -> Iterator[Callable[..., Receiver]]:
    """Makes a server that behaves so, one request after the other; the last for all that follow."""
    made: list[Receiver] = []

    def serve(*behaviours: Behaviour) -> Receiver:
        script = list(behaviours)

        def behave(seen: Seen, connection: socket.socket) -> bool:
            return (script.pop(0) if len(script) > 1 else script[0])(seen, connection)

        made.append(Receiver(behave))
        return made[-1]

    yield serve
    for receiver in made:
        receiver.close()


def client(receiver: Receiver, timeout: float = 60) -> Scheduler:
    return Scheduler(f"http://127.0.0.1:{receiver.port}", "a key", timeout=timeout)


@pytest.mark.parametrize("failure", [BUSY, IN_FLIGHT, DROPS])
def test_a_post_is_sent_again_under_the_same_key(server: Callable[..., Receiver], failure: Behaviour) -> None:
    receiver = server(failure, failure, MADE)
    with client(receiver) as scheduler:
        assert scheduler.schedule(URL, rrule="FREQ=DAILY")["id"] == "s1"
    keys = {seen.headers["idempotency-key"] for seen in receiver.seen}
    assert (len(receiver.seen), len(keys)) == (3, 1)
    assert len({seen.body for seen in receiver.seen}) == 1


def test_two_posts_have_two_keys(server: Callable[..., Receiver]) -> None:
    receiver = server(MADE)
    with client(receiver) as scheduler:
        scheduler.trigger("s1")
        scheduler.trigger("s1")
    assert len({seen.headers["idempotency-key"] for seen in receiver.seen}) == 2


def test_it_gives_up_after_its_tries(server: Callable[..., Receiver]) -> None:
    receiver = server(BUSY)
    with client(receiver) as scheduler, pytest.raises(SchedulerError, match="503: the database"):
        scheduler.get("s1")
    assert len(receiver.seen) == 4


def test_what_is_refused_for_long_is_not_asked_for_again(server: Callable[..., Receiver]) -> None:
    receiver = server(says("429 Too Many Requests", "Retry-After: 3600", body=b'{"detail": "go on later"}'))
    with client(receiver) as scheduler, pytest.raises(SchedulerError, match="429: go on later"):
        scheduler.trigger("s1")
    assert len(receiver.seen) == 1


def test_a_refusal_is_not_asked_for_again(server: Callable[..., Receiver]) -> None:
    receiver = server(TAKEN)
    with client(receiver) as scheduler, pytest.raises(SchedulerError, match="409: the id was used"):
        scheduler.schedule(URL, rrule="FREQ=DAILY", id="s1")
    assert len(receiver.seen) == 1


def test_a_deletion_whose_answer_was_lost_succeeded(server: Callable[..., Receiver]) -> None:
    with client(server(DROPS, GONE)) as scheduler:
        scheduler.cancel("s1")
    with client(server(GONE)) as scheduler, pytest.raises(SchedulerError, match="404"):
        scheduler.cancel("s1")


def test_a_server_that_never_answers_is_given_up(server: Callable[..., Receiver]) -> None:
    receiver = server(hangs)
    with (
        client(receiver, timeout=0.1) as scheduler,
        pytest.raises(SchedulerError, match="cannot be reached") as caught,
    ):
        scheduler.get("s1")
    assert caught.value.status is None
    # The receiver may come to the last one after the client has given it up.
    wait_until(lambda: receiver.connections >= 4, "each of the tries")
    assert receiver.connections == 4


def test_nobody_at_the_address_is_told_in_a_sentence() -> None:
    with Scheduler("http://127.0.0.1:9", retries=0) as scheduler, pytest.raises(SchedulerError) as caught:
        scheduler.get("s1")
    assert str(caught.value) == "http://127.0.0.1:9 cannot be reached: [Errno 111] Connection refused"


def test_a_redirect_does_not_carry_the_key_away(server: Callable[..., Receiver]) -> None:
    elsewhere = server(MADE)
    here = server(says("302 Found", f"Location: http://127.0.0.1:{elsewhere.port}/"))
    with client(here) as scheduler, pytest.raises(SchedulerError, match="302: not an answer of the API"):
        scheduler.get("s1")
    assert elsewhere.seen == []


def test_what_is_no_api_is_told(server: Callable[..., Receiver]) -> None:
    receiver = server(says(body=b"<h1>It works!</h1>"))
    with client(receiver) as scheduler, pytest.raises(SchedulerError, match="not an answer of the API: <h1>"):
        scheduler.get("s1")


def test_pages_are_asked_for_only_when_they_are_needed(server: Callable[..., Receiver]) -> None:
    page = json.dumps(
        {"schedules": [{"id": "s1", "state": "active"}, {"id": "s2", "state": "active"}], "next_cursor": "c1"}
    ).encode()
    receiver = server(says(body=page))
    with client(receiver) as scheduler:
        found = scheduler.list()
        assert next(found)["id"] == "s1"
    assert [seen.path for seen in receiver.seen] == ["/api/v1/schedules?limit=100"]
