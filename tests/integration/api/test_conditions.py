"""ETag, If-Match and If-None-Match on one schedule."""

from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

Create = Callable[..., dict[str, Any]]


def test_the_tag_of_an_answer_lets_the_next_edit_pass_and_a_stale_one_not(
    client: FlaskClient, create: Create
) -> None:
    url = f"/api/schedules/{create()['id']}"
    seen = client.get(url).headers["ETag"]
    edited = client.put(url, json={"name": "mine"}, headers={"If-Match": seen})
    assert edited.status_code == 200
    assert edited.headers["ETag"] != seen
    late = client.put(url, json={"name": "theirs"}, headers={"If-Match": seen})
    assert late.status_code == 412
    assert "version 2" in late.get_json()["detail"]
    assert client.get(url).get_json()["name"] == "mine"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", ""),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("POST", "/signing-secret"),
        ("DELETE", "/signing-secret"),
    ],
)
def test_every_change_of_a_schedule_honours_if_match(
    client: FlaskClient, create: Create, method: str, path: str
) -> None:
    url = f"/api/schedules/{create()['id']}"
    body = {"name": "new"} if method == "PUT" else None
    for stale in ('"7"', '"7-00000000"', '"nonsense"', 'W/"1"', '""', '"2", "3"'):
        answer = client.open(url + path, method=method, json=body, headers={"If-Match": stale})
        assert answer.status_code == 412, stale
    assert client.get(url).get_json()["version"] == 1
    answer = client.open(url + path, method=method, json=body, headers={"If-Match": '"9", "1"'})
    assert answer.status_code in (200, 201)


def test_any_version_passes_a_star(client: FlaskClient, create: Create) -> None:
    url = f"/api/schedules/{create()['id']}"
    assert client.put(url, json={"name": "new"}, headers={"If-Match": "*"}).status_code == 200


def test_what_is_unchanged_is_not_sent_again(client: FlaskClient, create: Create) -> None:
    url = f"/api/schedules/{create()['id']}"
    tag = client.get(url).headers["ETag"]
    again = client.get(url, headers={"If-None-Match": tag})
    assert (again.status_code, again.data, again.headers["ETag"]) == (304, b"", tag)
    client.post(f"{url}/pause")
    assert client.get(url, headers={"If-None-Match": tag}).status_code == 200


def test_a_schedule_that_has_moved_on_by_itself_is_sent_again_and_may_be_edited(
    client: FlaskClient, create: Create, store: Any
) -> None:
    made = create()
    url = f"/api/schedules/{made['id']}"
    tag = client.get(url).headers["ETag"]
    store.mongo.collection("schedules").update_one({"_id": made["id"]}, {"$set": {"state": "finished"}})
    assert client.get(url, headers={"If-None-Match": tag}).status_code == 200
    assert client.put(url, json={"name": "new"}, headers={"If-Match": tag}).status_code == 200
