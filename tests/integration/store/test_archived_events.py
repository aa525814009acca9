"""The view `archived_events`: what is finished, for people who look into the database."""

from datetime import datetime, timedelta

from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from tests.builders import event


def test_what_completed_and_what_failed_for_good_is_archived_and_the_rest_is_not(
    store: Store, now: datetime
) -> None:
    completed, failed, waiting = (event(now, each) for each in ("completed", "failed", "waiting"))
    store.events.insert([completed, failed, waiting], now, "made")
    for made, state in ((completed, State.COMPLETED), (failed, State.ERROR)):
        token, _ = store.claims.claim(
            [made.id], until=now + timedelta(minutes=1), now=now, lease_seconds=600, worker="w"
        )
        record = OutcomeRecord(made.id, token, state, "the end", None, {"number": 1, "status_code": 200}, now)
        assert store.outcomes.record([record]) == []
    archived = store.mongo.collection("archived_events").find().to_list()
    assert {each["_id"]: each["state"] for each in archived} == {
        completed.id: "completed",
        failed.id: "error",
    }
    assert all(each["status"][-1]["message"] == "the end" for each in archived)
