"""The transaction of a process that was killed does not lock a schedule for long."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.store import Store
from tests.processes import wait_until
from tests.standstills import Standstills

Create = Callable[..., dict[str, Any]]

#: MongoDB's own limit for a transaction.
DEFAULT_SECONDS = 60


@pytest.fixture(scope="module", autouse=True)
def patient() -> None:
    """Here it is the product's own patience that counts: an edit ends before the transaction does."""


def test_a_schedule_that_a_transaction_was_left_on_can_be_edited_before_a_minute_is_over(
    client: FlaskClient, store: Store, create: Create
) -> None:
    schedule_id = create(name="before")["id"]
    change = {"name": "after"}

    def is_edited() -> bool:
        answer = client.put(f"/api/schedules/{schedule_id}", json=change)
        assert answer.status_code in (200, 503), answer.text
        return answer.status_code == 200

    with store.mongo.client.start_session() as session:
        session.start_transaction()
        schedules = store.mongo.db.get_collection("schedules")
        schedules.update_one({"_id": schedule_id}, {"$set": {"lease_until": None}}, session=session)
        began = time.monotonic()
        with Standstills() as stood:
            wait_until(is_edited, "the edit", pause=0.5)
        took = time.monotonic() - began
        assert took > 2
        assert took - stood.seconds < DEFAULT_SECONDS - 20
    assert client.get(f"/api/schedules/{schedule_id}").get_json()["name"] == "after"
