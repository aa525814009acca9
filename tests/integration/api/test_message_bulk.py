"""Messages of one bulk that have most of their fields in common: what is checked once holds for each."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.domain.masking import MASK

Item = dict[str, Any]

ALIKE: Item = {
    "callback_url": "http://127.0.0.1:9/",
    "headers": {"X-Team": "billing"},
    "max_retries": 1,
    "delay_seconds": 3_600,
}

#: What each differs in from the message before it.
OTHERS: dict[str, Item] = {
    "nothing": {},
    "a number that is true": {"max_retries": True},
    "a number with a fraction": {"max_retries": 1.0},
    "a URL that is refused": {"callback_url": "http://10.0.0.1/"},
    "no URL": {"callback_url": None},
    "a header that is masked": {"headers": {"X-Team": MASK}},
    "a header that is no text": {"headers": {"X-Team": {"deep": [1]}}},
    "an unknown field": {"retries": 3},
    "an unknown field with members": {"retries": {"most": {"of": 3}}},
    "an id": {"id": "order-1"},
    "an id with a space": {"id": "order 1"},
    "an id that is a word of the paths": {"id": "bulk"},
    "an id as notifications have them": {"id": "order-1-on-failure"},
    "a payload": {"payload": {"order": 1}},
    "no payload": {"payload": None},
    "two bodies": {"payload": 1, "body": "text"},
    "a body that is no base64": {"body_base64": "*"},
    "a masked body": {"body": MASK},
    "two times": {"scheduled_at": "2040-01-01T00:00:00Z"},
    "a time without an offset": {"scheduled_at": "2040-01-01T00:00:00", "delay_seconds": None},
    "a time below zero": {"delay_seconds": -1},
    "metadata": {"metadata": {"source": "shop"}},
    "masked metadata": {"metadata": {"source": MASK}},
    "metadata with a line end": {"metadata": {"source": "a\nb"}},
    "metadata beyond the bound": {"metadata": {f"n{number}": "x" for number in range(51)}},
    "metadata and headers beyond the bound": {"metadata": {f"n{number}": "x" for number in range(50)}},
    "an event name": {"event_name": "orders.reminder"},
    "an event name that is no text": {"event_name": 7},
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_message_behind_one_like_it_is_judged_as_it_is_alone(client: FlaskClient, other: Item) -> None:
    alone = _results(client, [ALIKE | other], dry_run=True)
    behind = _results(client, [ALIKE, ALIKE | other, ALIKE])
    assert [result["status"] for result in (behind[0], behind[2])] == [201, 201]
    assert behind[1]["status"] == alone[0]["status"]
    assert behind[1].get("problem") == alone[0].get("problem")


def test_messages_that_have_all_but_their_own_in_common_keep_their_own(client: FlaskClient) -> None:
    items = [
        ALIKE | {"id": "a", "payload": {"number": 1}, "event_name": "one"},
        ALIKE | {"id": "b", "body": "text", "metadata": {"source": "shop"}},
        ALIKE | {"id": "c", "delay_seconds": 7_200},
    ]
    assert [result["status"] for result in _results(client, items)] == [201, 201, 201]
    a, b, c = (client.get(f"/api/messages/{name}").get_json() for name in "abc")
    assert [each.get("event_name") for each in (a, b, c)] == ["one", None, None]
    assert ["payload" in a, "body" in b, "payload" in c or "body" in c] == [True, True, False]
    assert [each.get("metadata") for each in (a, b, c)] == [{}, {"source": MASK}, {}]
    assert a["scheduled_at"] == b["scheduled_at"] < c["scheduled_at"]
    assert {each["max_retries"] for each in (a, b, c)} == {1}


def _results(client: FlaskClient, items: list[Item], *, dry_run: bool = False) -> list[Item]:
    answer = client.post(
        "/api/messages/bulk", json={"messages": items}, query_string={"dry_run": str(dry_run).lower()}
    )
    assert answer.status_code == 200, answer.text
    results: list[Item] = answer.get_json()["results"]
    return results
