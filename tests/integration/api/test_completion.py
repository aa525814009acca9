"""Receivers that answer at once, work on, and say later how that went."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.domain.ids import whole_id
from scheduler_app.domain.schedule import Schedule
from scheduler_app.usecases.cause_counts import CauseCounts
from scheduler_app.usecases.deeds.events import CompletionTimeouts
from scheduler_app.usecases.duties.housekeeping import Recovery
from tests import canaries
from tests.acceptance.journal import Journal
from tests.integration.actions.receiver import says
from tests.integration.api.conftest import start as start_api
from tests.integration.api.conftest import stop
from tests.integration.usecases.conftest import _patient
from tests.integration.usecases.test_delivery import Bench, bench, journal, start
from tests.processes import wait_until

__all__ = ["_patient", "bench", "journal", "start"]  # fixtures

SECOND = timedelta(seconds=1)
TOKEN = "X-Scheduler-Completion-Token"
ACCEPTS = says("202 Accepted")


@pytest.fixture
def client(settings: Settings) -> Iterator[FlaskClient]:
    """The API with a key, which receivers do not have."""
    app = start_api(replace(settings, api_keys=(canaries.API_KEY,)))
    yield app.test_client()
    stop(app)


def awaited(bench: Bench, journal: Journal, *, times: int = 1, **fields: Any) -> tuple[str, str]:
    """An event whose request was answered 202, and the token that it carried."""
    if not bench.store.schedules.for_delivery(["s1"]):
        fields = {"backoff_seconds": 60.0, "backoff_max_seconds": 60.0} | fields
        bench.schedule(journal.script("/a", ACCEPTS), completion="callback", **fields)
    event_id = bench.event(clock.now() - times * SECOND)
    bench.deliver([event_id])
    assert bench.state(event_id) == "running"
    return event_id, token_of(journal)


def token_of(journal: Journal) -> str:
    return journal.calls["/a"][-1].seen.headers[TOKEN.lower()]


def tell(client: FlaskClient, event_id: str, word: str, token: str | None, **body: Any) -> tuple[int, Any]:
    headers = {TOKEN: token} if token is not None else {}
    answer = client.post(f"/api/events/{event_id}/{word}", headers=headers, json=body or None)
    return answer.status_code, answer.json


def last_line(bench: Bench, event_id: str) -> str:
    return str(bench.document(event_id)["status"][-1]["message"])


def test_an_event_runs_until_its_receiver_completes_it(
    client: FlaskClient, bench: Bench, journal: Journal
) -> None:
    event_id, token = awaited(bench, journal)
    waiting = bench.document(event_id)
    assert "owner" not in waiting
    assert "lease_until" not in waiting
    assert clock.now() + 3_500 * SECOND < waiting["due_at"] < clock.now() + 3_700 * SECOND
    assert last_line(bench, event_id).startswith("Accepted with status 202: it runs until its receiver says")
    assert waiting["attempts"][-1]["status_code"] == 202
    assert bench.pipeline.capacity.held == 0
    status, view = tell(client, event_id, "complete", token)
    assert (status, view["state"], view["attempt"]) == (200, "completed", 1)
    assert last_line(bench, event_id) == "Its receiver has completed it"
    done = bench.document(event_id)
    assert "due_at" not in done
    assert done["notify"]["when"] == "on_success"
    assert len(done["attempts"]) == 1
    found = bench.store.schedules.get("s1")
    assert isinstance(found, Schedule)
    (found,) = bench.store.last_runs.attach([found])
    assert found.last_run is not None
    assert found.last_run.outcome == "completed"


def test_what_failed_is_tried_again_by_its_policy(
    client: FlaskClient, bench: Bench, journal: Journal
) -> None:
    event_id, token = awaited(bench, journal, max_retries=1)
    before = clock.now()
    status, view = tell(client, event_id, "fail", token, reason="the disk is full")
    assert (status, view["state"]) == (200, "retrying")
    assert "Attempt 1 failed: its receiver says: the disk is full; the next follows at" in last_line(
        bench, event_id
    )
    due = bench.document(event_id)["due_at"]
    assert before + 29 * SECOND < due <= clock.now() + 60 * SECOND
    which = {"_id": event_id}
    bench.store.mongo.collection("events").update_one(which, {"$set": {"due_at": clock.now()}})
    bench.deliver([event_id])
    assert bench.state(event_id) == "running"
    assert token_of(journal) != token
    # The first one's token is the event's still: the receiver may have kept it.
    status, view = tell(client, event_id, "fail", token)
    assert (status, view["state"], view["attempt"]) == (200, "error", 2)
    assert last_line(bench, event_id) == "Attempt 2 failed, and it was the last one: its receiver says so"


def judge_nothing(schedule_id: str, now: datetime) -> bool:
    return False


def test_failures_that_are_told_pause_a_schedule(client: FlaskClient, bench: Bench, journal: Journal) -> None:
    policies: dict[str, Any] = {"max_retries": 0, "pause_after_failures": 2}
    for times in (2, 1):
        event_id, token = awaited(bench, journal, times=times, **policies)
        found = bench.store.schedules.get("s1")
        assert isinstance(found, Schedule)
        assert found.state == "active"
        assert tell(client, event_id, "fail", token)[1]["state"] == "error"
    found = bench.store.schedules.get("s1")
    assert isinstance(found, Schedule)
    assert found.state == "paused"


def overdue(bench: Bench, event_id: str) -> None:
    which, past = {"_id": event_id}, clock.now() - SECOND
    bench.store.mongo.collection("events").update_one(which, {"$set": {"due_at": past}})


def timeouts_of(bench: Bench) -> CompletionTimeouts:
    return CompletionTimeouts(bench.store, judge_nothing, CauseCounts(bench.store.causes))


def test_what_is_not_completed_in_time_has_failed(
    client: FlaskClient, bench: Bench, journal: Journal
) -> None:
    event_id, token = awaited(bench, journal, completion_timeout_seconds=120.0)
    timeouts = timeouts_of(bench)
    assert timeouts.end_overdue(clock.now()) == 0
    assert bench.state(event_id) == "running"
    assert timeouts.end_overdue(clock.now() + 121 * SECOND) == 1
    assert bench.state(event_id) == "retrying"
    assert "Attempt 1 failed: it was not completed within 120 s; the next" in last_line(bench, event_id)
    [cause] = bench.store.causes.living()
    assert (cause.key.failure, cause.failed, cause.schedules.names) == ("not completed in time", 1, ("s1",))
    assert bench.document(event_id)["cause"] == cause.key.id
    # Told after the timeout.
    status, problem = tell(client, event_id, "complete", token)
    assert status == 409
    assert "it was not completed within 120 s" in problem["detail"]
    assert bench.state(event_id) == "retrying"


def test_the_last_attempt_that_is_not_completed_in_time_is_an_error(
    client: FlaskClient, bench: Bench, journal: Journal
) -> None:
    event_id, token = awaited(bench, journal, max_retries=0)
    overdue(bench, event_id)
    assert timeouts_of(bench).end_overdue(clock.now()) == 1
    assert bench.state(event_id) == "error"
    assert bench.document(event_id)["notify"]["when"] == "on_failure"
    status, problem = tell(client, event_id, "complete", token)
    assert status == 409
    assert problem["detail"].startswith("the event is error: Attempt 1 failed, and it was the last one")


@pytest.mark.parametrize(
    ("first", "second", "status", "state"),
    [
        ("complete", "complete", 200, "completed"),
        ("complete", "fail", 409, "completed"),
        ("fail", "fail", 200, "retrying"),
        ("fail", "complete", 409, "retrying"),
    ],
)
def test_a_receiver_may_tell_twice(
    client: FlaskClient, bench: Bench, journal: Journal, first: str, second: str, status: int, state: str
) -> None:
    event_id, token = awaited(bench, journal)
    assert tell(client, event_id, first, token)[0] == 200
    before = bench.document(event_id)
    assert tell(client, event_id, second, token)[0] == status
    assert bench.state(event_id) == state
    assert bench.document(event_id) == before


@pytest.mark.parametrize("word", ["complete", "fail"])
def test_a_stranger_learns_and_changes_nothing(
    client: FlaskClient, bench: Bench, journal: Journal, word: str
) -> None:
    event_id, token = awaited(bench, journal)
    other, others_token = awaited(bench, journal, times=2)
    plain = bench.schedule(journal.url("/plain"), "plain").id
    without = bench.event(clock.now() + 3_600 * SECOND, plain)
    guesses = [(event_id, "guess"), (event_id, others_token), (event_id, ""), (other, token)]
    guesses += [(without, token), ("s1-1-20200101T000000Z", token), (event_id, "x" * 1000), (event_id, "é")]
    answers = [tell(client, each, word, guess) for each, guess in guesses]
    assert {status for status, _ in answers} == {403}
    assert len({problem["detail"] for _, problem in answers}) == 1
    assert bench.state(event_id) == bench.state(other) == "running"
    # Without the header the route is as closed as any other.
    assert tell(client, event_id, word, None)[0] == 401
    key = {"X-API-Key": canaries.API_KEY}
    assert client.post(f"/api/events/{event_id}/{word}", headers=key).status_code == 403


def test_a_token_opens_nothing_else(client: FlaskClient, bench: Bench, journal: Journal) -> None:
    event_id, token = awaited(bench, journal)
    for method, path in (
        ("GET", f"/api/events/{event_id}"),
        ("POST", f"/api/events/{event_id}/cancel"),
        ("POST", f"/api/events/{event_id}/complete/"),
        ("GET", f"/api/events/{event_id}/complete"),
        ("POST", "/api/events/redrive"),
    ):
        assert client.open(path, method=method, headers={TOKEN: token}).status_code in (401, 404, 405), path


def test_a_worker_that_dies_meanwhile_changes_nothing(
    client: FlaskClient, bench: Bench, journal: Journal
) -> None:
    event_id, token = awaited(bench, journal)
    bench.pipeline.stop_starting()
    bench.pipeline.interrupt()
    assert Recovery(bench.store).recover_workers(clock.now() + 600 * SECOND).total == 0
    assert bench.state(event_id) == "running"
    assert tell(client, event_id, "complete", token)[0] == 200
    assert len(journal.calls["/a"]) == 1


def test_a_receiver_may_be_quicker_than_the_record_of_its_answer(
    client: FlaskClient, bench: Bench, journal: Journal
) -> None:
    answers: list[int] = []

    def behave(seen: Any, connection: Any) -> bool:
        event_id, token = seen.headers["idempotency-key"], seen.headers[TOKEN.lower()]
        answers.append(tell(client, event_id, "complete", token)[0])
        return ACCEPTS(seen, connection)

    bench.schedule(journal.script("/a", behave), completion="callback")
    event_id = bench.event(clock.now())
    bench.deliver([event_id])
    assert answers == [200]
    done = bench.document(event_id)
    assert done["state"] == "completed"
    assert done["attempt"] == 1
    assert [attempt["number"] for attempt in done["attempts"]] == [1]
    assert not any(attempt.get("late") for attempt in done["attempts"])


def test_a_failure_told_before_the_answer_is_one_attempt(
    client: FlaskClient, bench: Bench, journal: Journal
) -> None:
    def behave(seen: Any, connection: Any) -> bool:
        event_id, token = seen.headers["idempotency-key"], seen.headers[TOKEN.lower()]
        tell(client, event_id, "fail", token, reason="no")
        return ACCEPTS(seen, connection)

    bench.schedule(journal.script("/a", behave), completion="callback", backoff_seconds=60.0)
    event_id = bench.event(clock.now())
    bench.deliver([event_id])
    done = bench.document(event_id)
    assert (done["state"], done["attempt"], len(done["attempts"])) == ("retrying", 1, 1)


def test_what_was_done_for_a_lost_worker_is_completed(
    client: FlaskClient, bench: Bench, journal: Journal
) -> None:
    """The worker was killed after its request and before its record; the receiver worked on."""
    event_id, token = awaited(bench, journal)
    lost = {"state": "retrying", "lost_leases": 1, "attempt": 0, "attempts": [], "owner": "dead"}
    which = {"_id": event_id}
    bench.store.mongo.collection("events").update_one(
        which, {"$set": lost, "$unset": {"completion.awaiting": ""}}
    )
    assert tell(client, event_id, "complete", token)[0] == 200
    assert bench.state(event_id) == "completed"


def test_a_request_that_fails_is_tried_again_as_ever(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.script("/a", says("500 No")), completion="callback")
    event_id = bench.event(clock.now())
    bench.deliver([event_id])
    assert bench.state(event_id) == "retrying"


def test_overlap_means_the_job_and_not_the_request(
    client: FlaskClient, bench: Bench, journal: Journal
) -> None:
    first, token = awaited(bench, journal, times=3, run_overlap="queue")
    second = bench.event(clock.now() - SECOND)
    bench.deliver([second])
    assert bench.state(second) == "ready_queue"
    assert f"Waits in place 1 for the earlier event {first}" in last_line(bench, second)
    assert tell(client, first, "complete", token)[0] == 200
    assert "It is its turn" in " ".join(line["message"] for line in bench.document(second)["status"])
    wait_until(lambda: bench.document(second)["due_at"] <= clock.now(), "the second one's turn")


def test_no_token_is_shown_or_stored(client: FlaskClient, bench: Bench, journal: Journal) -> None:
    def echoes(seen: Any, connection: Any) -> bool:
        body = repr(seen.headers).encode()
        return says("202 Accepted", body=body)(seen, connection)

    bench.schedule(journal.script("/a", echoes), completion="callback")
    event_id = bench.event(clock.now())
    bench.deliver([event_id])
    token = token_of(journal)
    assert token not in repr(bench.document(event_id))
    assert "***" in bench.document(event_id)["attempts"][0]["snippet"]
    view = client.get(f"/api/events/{event_id}", headers={"X-API-Key": canaries.API_KEY}).json
    assert view is not None
    assert "completion" not in view
    assert token not in repr(view)


def test_a_command_cannot_be_completed_by_a_callback(client: FlaskClient) -> None:
    given: dict[str, Any] = {"name": "c", "rrule": "FREQ=DAILY", "completion": "callback"}
    given["action"] = {"type": "command", "command": ["true"]}
    answer = client.post("/api/schedules", json=given, headers={"X-API-Key": canaries.API_KEY})
    assert answer.status_code == 422
    assert answer.json is not None
    assert answer.json["errors"][0]["pointer"] in ("/completion", "/action")


def test_a_bent_record_of_completion_is_set_aside_alone(bench: Bench, journal: Journal) -> None:
    bent, _ = awaited(bench, journal)
    sound, _ = awaited(bench, journal, times=2)
    documents = bench.store.mongo.collection("events")
    documents.update_one({"_id": bent}, {"$set": {"completion.tokens": 5}})
    overdue(bench, bent)
    overdue(bench, sound)
    assert timeouts_of(bench).end_overdue(clock.now()) == 1
    assert bench.state(bent) == "error"
    assert bench.state(sound) == "retrying"


def test_a_redriven_event_can_be_completed_anew(client: FlaskClient, bench: Bench, journal: Journal) -> None:
    event_id, token = awaited(bench, journal, max_retries=0)
    assert tell(client, event_id, "fail", token)[1]["state"] == "error"
    key = {"X-API-Key": canaries.API_KEY}
    assert client.post(f"/api/events/{event_id}/redrive", headers=key).status_code == 202
    bench.deliver([event_id])
    assert bench.state(event_id) == "running"
    assert tell(client, event_id, "complete", token_of(journal))[0] == 200


def test_a_person_may_give_up_an_event_that_nobody_completes(
    client: FlaskClient, bench: Bench, journal: Journal
) -> None:
    event_id, token = awaited(bench, journal)
    key = {"X-API-Key": canaries.API_KEY}
    answer = client.post(f"/api/events/{event_id}/cancel", headers=key)
    assert answer.status_code == 200, answer.text
    assert bench.state(event_id) == "cancelled"
    assert "awaiting" not in bench.document(event_id)["completion"]
    status, problem = tell(client, event_id, "complete", token)
    assert (status, problem["detail"]) == (409, "the event is cancelled: Withdrawn by a person")


def test_the_manual_s_schedules_are_accepted(client: FlaskClient) -> None:
    mark = "<!-- run by tests/integration/api/test_completion.py -->\n```json\n"
    manual = (Path(__file__).parents[3] / "docs" / "policies.md").read_text()
    given = [json.loads(part.split("```")[0]) for part in manual.split(mark)[1:]]
    assert len(given) == 2
    for body in given:
        answer = client.post("/api/schedules", json=body, headers={"X-API-Key": canaries.API_KEY})
        assert answer.status_code == 201, answer.text
        assert answer.json is not None
        assert answer.json["run_overlap"] == "skip"


def test_a_receiver_of_a_tenant_names_the_event_as_it_was_told_and_needs_no_key(
    client: FlaskClient, bench: Bench, journal: Journal
) -> None:
    schedule_id = whole_id("acme", "s1")
    bench.schedule(journal.script("/a", ACCEPTS), schedule_id=schedule_id, completion="callback")
    event_id = bench.event(clock.now() - SECOND, schedule_id=schedule_id)
    bench.deliver([event_id])
    told = journal.calls["/a"][-1].seen.headers["webhook-id"]
    assert told == event_id
    assert event_id.startswith("acme:s1-")
    token = token_of(journal)
    other = event_id.replace("acme:", "globex:")
    assert tell(client, other, "complete", token)[0] == tell(client, "acme:none-1-x", "complete", token)[0]
    assert tell(client, event_id.removeprefix("acme:"), "complete", token)[0] == 403
    assert bench.state(event_id) == "running"
    status, view = tell(client, event_id, "complete", token)
    assert status == 200, view
    assert bench.state(event_id) == "completed"
