"""Processes that die in the middle of it: nothing is lost, and no receiver sees two keys for one thing."""

import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
import requests

from scheduler_app.config import Settings
from tests.acceptance.journal import Journal
from tests.acceptance.stack import Stack
from tests.integration.actions.receiver import Behaviour, Seen, says
from tests.killed_edits import kill_edit, lasting_transactions
from tests.processes import PATIENCE_SECONDS, wait_until

IN_FLIGHT = 20


def when_told(told: threading.Event) -> Behaviour:
    """Holds every request until it is told, then answers 200."""

    def behave(seen: Seen, connection: socket.socket) -> bool:
        told.wait(PATIENCE_SECONDS)
        return says()(seen, connection)

    return behave


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_worker_killed_with_callbacks_in_flight_loses_none_of_them(
    make_stack: Callable[..., Stack], journal: Journal
) -> None:
    stack = make_stack()
    stack.api()
    stack.beat()
    victim = stack.worker("victim")
    told = threading.Event()
    url = journal.script("/held", when_told(told))
    due = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
    made = stack.create_many(IN_FLIGHT, url, run_at=due)
    wait_until(lambda: len(journal.calls["/held"]) == IN_FLIGHT, "all requests to be in flight")
    stack.kill(victim)
    told.set()
    stack.worker("heir")
    for schedule in made:
        (event,) = stack.finished(schedule)
        assert event["state"] == "completed"
        assert event["attempt"] == 1
        assert "Recovered" in " ".join(line["message"] for line in event["status"])
    keys = {call.key for call in journal.calls["/held"]}
    assert len(keys) == IN_FLIGHT
    assert len(journal.calls["/held"]) == 2 * IN_FLIGHT


@pytest.mark.timeout(180)
def test_a_beat_killed_beside_another_changes_nothing(stack: Stack, journal: Journal) -> None:
    victim = stack.beat("victim")
    made = [stack.create(journal.url(f"/{number}"), rrule="FREQ=SECONDLY;COUNT=6") for number in range(20)]
    wait_until(lambda: len(journal.calls["/0"]) >= 2, "some calls")
    stack.kill(victim)
    for number, schedule in enumerate(made):
        stack.finished(schedule, 6)  # the dead one may have held a lease of 30 s
        times = [call.run_time for call in journal.calls[f"/{number}"]]
        assert len(times) == 6
        assert len(set(times)) == 6


@pytest.mark.timeout(180)
def test_what_a_killed_edit_held_can_be_edited_at_once_and_others_are_called(
    stack: Stack, journal: Journal
) -> None:
    own = stack.environment
    settings = Settings(
        mongo_uri=own["MONGO_URI"], mongo_database=own["MONGO_DATABASE"], broker_url=own["BROKER_URL"]
    )
    held = stack.create(journal.url("/held"), rrule="FREQ=SECONDLY")
    with lasting_transactions(own["MONGO_URI"]):
        kill_edit(held, settings)
        other = stack.create(journal.url("/other"), rrule="FREQ=SECONDLY;COUNT=3")
        pause = f"{stack.url}/api/schedules/{held}/pause"
        # While it is held, the answer says when to try again.
        wait_until(lambda: requests.post(pause).status_code == 200, "the pause", pause=0.5)
    stack.finished(other, 3)
    times = [call.run_time for call in journal.calls["/other"]]
    assert len(set(times)) == len(times) == 3
