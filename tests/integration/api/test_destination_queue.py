"""The queue of a destination, as the API takes and shows it."""

import pytest
from flask.testing import FlaskClient

PATH = "/api/destinations/billing"
BODY = {"url": "http://127.0.0.1:9/"}


def test_a_destination_says_which_workers_send_what_comes_to_it(client: FlaskClient) -> None:
    assert "queue" not in client.put(PATH, json=BODY).get_json()
    assert client.patch(PATH, json={"queue": "eu"}).get_json()["queue"] == "eu"
    assert client.get(PATH).get_json()["queue"] == "eu"
    assert client.put(PATH, json=BODY | {"queue": "eu"}).get_json()["result"] == "unchanged"
    assert "queue" not in client.patch(PATH, json={"queue": None}).get_json()


@pytest.mark.parametrize("queue", ["", "a b", "x" * 65, "celery", "commands", 5, ["eu"]])
def test_a_queue_that_cannot_be_one_is_refused(client: FlaskClient, queue: object) -> None:
    answer = client.put(PATH, json=BODY | {"queue": queue})
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.get_json()["errors"]] == ["/queue"]
