"""No secret of a command, of a Celery task, of its brokers or of a browser's session comes out."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.actions.kind import make_executors
from scheduler_app.actions.registry import KINDS
from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.domain.action import COMMANDS
from scheduler_app.store import Store
from scheduler_app.worker import Pipeline
from tests import canaries
from tests.integration.api.conftest import start, stop
from tests.integration.api.page_forms import form_token
from tests.integration.test_canary_data import AUTH, NEVER, dump
from tests.processes import PATIENCE_SECONDS

BROKER, RESULTS = "canary-celery-broker-8a1f", "canary-celery-results-03de"
OWN = {"password of a broker": BROKER, "password of a result backend": RESULTS}
COOKIE = "scheduler_session"


@pytest.fixture
def keyed(settings: Settings) -> Settings:
    return replace(
        settings,
        secrets_key=canaries.SECRETS_KEY,
        api_keys=(canaries.API_KEY,),
        allowed_commands=("PASSWORD= /usr/bin/env",),
        # Nobody listens there.
        celery_brokers=(("shop", f"redis://:{BROKER}@127.0.0.1:1/0"),),
        celery_tasks=("shop:*",),
        celery_result_backends=(("shop", f"redis://:{RESULTS}@127.0.0.1:1/1"),),
    )


@pytest.fixture
def client(keyed: Settings, store: Store) -> Iterator[FlaskClient]:
    app = start(keyed)
    yield app.test_client()
    stop(app)


def deliver(keyed: Settings, kinds: tuple[str, ...], queue: str, events: list[str]) -> None:
    """By a worker of these kinds of actions."""
    with closing(Store(keyed)) as own:
        pipeline = Pipeline(
            own,
            make_executors(keyed, [KINDS[each] for each in kinds]),
            now=clock.now,
            worker="w1",
            horizon_seconds=5,
            max_events=1_000,
            queues=(queue,),
        )
        pipeline.start()
        assert pipeline.delivery.deliver(events) == len(events)
        assert pipeline.wait_until_empty(PATIENCE_SECONDS)
        pipeline.stop_starting()
        pipeline.stop()


def test_no_canary_of_an_action_or_of_a_session_is_stored_shown_or_logged(
    client: FlaskClient, keyed: Settings, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    answers: list[str] = []

    def ask(method: str, path: str, body: Any = None, status: int = 200) -> Any:
        once = AUTH | ({"Idempotency-Key": f"{len(answers)}"} if method == "POST" else {})
        answer = client.open(path, method=method, json=body, headers=once)
        assert answer.status_code == status, answer.text
        answers.append(answer.text)
        return json.loads(answer.text) if answer.is_json else None

    actions = {"command": canaries.command(), "task": canaries.celery_task()}
    for name, action in actions.items():
        # A busy machine takes seconds to start a command; the broker of the task never answers.
        limit = 60 if name == "command" else 2
        rule = {"name": "x", "rrule": NEVER, "max_retries": 0, "timeout_seconds": limit}
        ask("POST", "/api/schedules", {"id": name, **rule, "action": action}, 201)
        ask("PUT", f"/api/schedules/{name}", {"name": "renamed"})
        ask("PUT", f"/api/schedules/{name}?dry_run=true", {"action": action | {"type": "neither"}}, 422)
        ask("POST", "/api/schedules?dry_run=true", {**rule, "action": action}, 201)
    ask("POST", "/api/schedules", {**rule, "action": actions["task"] | {"broker": BROKER[:7]}}, 422)
    events = [
        ask("POST", f"/api/schedules/{each}/trigger", None, 202)["event_id"] for each in ("command", "task")
    ]
    deliver(keyed, ("command",), COMMANDS, events[:1])
    deliver(keyed, ("http", "celery_task"), "callbacks", events[1:])
    pages = [f"/schedules/{each}{rest}" for each in actions for rest in ("", "/edit")]
    for path in (
        *(f"/api/schedules/{each}{rest}" for each in actions for rest in ("", "/edits", "/events/history")),
        *(f"/api/events/{each}" for each in events),
        *("/api/schedules", "/api/schedules/export", "/api/events", "/docs/openapi.yml", "/metrics"),
    ):
        ask("GET", path)
    states = [store.events.get(each) for each in events]
    assert [each.state for each in states if each] == ["completed", "error"]

    assert (
        client.post(
            "/sign-in", data={"form_token": form_token(client, "/sign-in"), "key": canaries.API_KEY}
        ).status_code
        == 303
    )
    session = client.get_cookie(COOKIE)
    assert session is not None
    own = OWN | {"session": session.value}
    for path in (
        *pages,
        *(f"/events/{each}" for each in events),
        "/",
        "/events",
        "/dead-letters",
        "/processes",
    ):
        page = client.get(path)
        assert page.status_code == 200, path
        answers.append(page.text)
    shown, stored, logged = "".join(answers), dump(store), "".join(capsys.readouterr())
    for where, text in (("answers", shown), ("the database", stored), ("the log", logged)):
        assert canaries.found_in(text, **own) == [], where
    assert "********" in shown
    assert "schedule.created" in logged
