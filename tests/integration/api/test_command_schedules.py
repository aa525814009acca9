"""Commands and queues as the API takes and shows them."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.domain.masking import MASK

SCHEDULES = "/api/schedules"
BODY = {"name": "job", "run_at": "2040-01-01T00:00:00Z"}


@pytest.fixture
def client(make_api: Callable[..., Flask]) -> FlaskClient:
    return make_api(allowed_commands=("PASSWORD= echo *", "shell:/opt/jobs/*")).test_client()


def action(**fields: Any) -> dict[str, Any]:
    return BODY | {"action": {"type": "command", "command": ["echo", "hello"]} | fields}


def test_a_command_is_created_shown_and_exported(client: FlaskClient) -> None:
    made = client.post(SCHEDULES, json=action(env={"PASSWORD": "s3cret"}, retry_exit_codes=[1, 75]))
    assert made.status_code == 201, made.text
    shown = client.get(f"{SCHEDULES}/{made.get_json()['id']}").get_json()
    assert shown["action"] == {
        "type": "command",
        "command": ["echo", "hello"],
        "env": {"PASSWORD": MASK},
        "retry_exit_codes": [1, 75],
    }
    assert shown["queue"] == "commands"
    assert "callback_url" not in shown
    assert "s3cret" not in client.get(f"{SCHEDULES}/export").text


def test_one_text_is_split_into_words_and_shell_keeps_it(client: FlaskClient) -> None:
    made = client.post(SCHEDULES, json=action(command="echo 'a b' c")).get_json()
    assert made["action"]["command"] == ["echo", "a b", "c"]
    made = client.post(SCHEDULES, json=action(command="/opt/jobs/report", shell=True)).get_json()
    assert made["action"] == {"type": "command", "command": ["/opt/jobs/report"], "shell": True}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"command": ["rm", "-rf", "/"]}, "ALLOWED_COMMANDS"),
        ({"command": "echo a; reboot", "shell": True}, "ALLOWED_COMMANDS"),
        ({"command": ["echo", "a"], "shell": True}, "one text"),
        ({"command": "echo 'a"}, "split"),
        ({"command": []}, "list of words"),
        ({"env": {"GNUMAKEFLAGS": "x"}}, "ask the operator for the pattern PASSWORD= GNUMAKEFLAGS= echo *"),
        ({"env": {"PATH": "x"}}, "has PATH from its worker"),
        ({"env": {"A": MASK}}, "stands for"),
        ({"retry_exit_codes": [0]}, "retry_exit_codes"),
        ({"type": "pigeon"}, "command"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_what_cannot_or_must_not_run_is_refused(
    client: FlaskClient, fields: dict[str, Any], said: str
) -> None:
    answer = client.post(SCHEDULES, json=action(**fields))
    assert answer.status_code == 422
    assert said in answer.text


def test_a_mask_keeps_the_value_while_the_command_stays(client: FlaskClient) -> None:
    made = client.post(SCHEDULES, json=action(env={"PASSWORD": "s3cret"})).get_json()
    address = f"{SCHEDULES}/{made['id']}"
    again = client.put(address, json={"action": made["action"]})
    assert again.get_json()["result"] == "unchanged"
    other = made["action"] | {"command": ["echo", "other"]}
    assert client.put(address, json={"action": other}).status_code == 422


def test_a_schedule_may_name_a_queue_and_change_it(client: FlaskClient) -> None:
    given = {"name": "eu", "rrule": "FREQ=SECONDLY", "callback_url": "http://127.0.0.1:9/", "queue": "eu"}
    made = client.post(SCHEDULES, json=given).get_json()
    assert made["queue"] == "eu"
    address = f"{SCHEDULES}/{made['id']}"
    assert client.put(address, json={"queue": "us"}).get_json()["queue"] == "us"
    moved = client.put(address, json={"action": {"type": "command", "command": ["echo", "a"]}}).get_json()
    assert moved["queue"] == "commands"
    back = client.put(address, json={"callback_url": "http://127.0.0.1:9/"}).get_json()
    assert (back["queue"], "action" in back) == ("callbacks", False)


@pytest.mark.parametrize("queue", ["tasks", "celery", "unacked", "commands", "a b", "", "x" * 65, "a\n"])
def test_a_queue_that_cannot_be_is_refused(client: FlaskClient, queue: str) -> None:
    given = BODY | {"callback_url": "http://127.0.0.1:9/", "queue": queue}
    answer = client.post(SCHEDULES, json=given)
    assert answer.status_code == 422
    assert "queue" in answer.text


def test_either_a_url_or_an_action_is_needed(client: FlaskClient) -> None:
    assert "callback_url" in client.post(SCHEDULES, json=BODY).text
    both = action() | {"callback_url": "http://127.0.0.1:9/"}
    assert client.post(SCHEDULES, json=both).status_code == 422
