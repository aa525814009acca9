"""A rule keeps the reading that made it: what an earlier release pinned fires as it did, and says so."""

import json
from typing import Any

from flask.testing import FlaskClient

from scheduler_app.clock import clock
from scheduler_app.store import Store
from tests.builders import schedule

#: As earlier releases stored them, the occurrences of 2040 and 2041 then, and what a new rule gives.
PINNED: dict[str, tuple[str, list[str], list[str]]] = {
    "month-days": (
        "DTSTART:20400110T080000Z\nRRULE:FREQ=YEARLY;BYMONTHDAY=31;BYHOUR=8",
        ["20400131", "20400331", "20400531"],
        ["20400131", "20410131", "20420131"],
    ),
    "weeks": (
        "DTSTART:20400111T080000Z\nRRULE:FREQ=YEARLY;BYWEEKNO=20",
        ["20400514", "20400515", "20400516"],
        ["20400516", "20410515", "20420514"],
    ),
}


def first(client: FlaskClient, schedule_id: str) -> list[str]:
    found = client.get(f"/api/schedules/{schedule_id}/preview?limit=3").get_json()["occurrences"]
    return [one["run_time"][:10].replace("-", "") for one in found]


def stored_long_ago(store: Store, schedule_id: str, text: str) -> None:
    """The document as an earlier release wrote it: its pinned text leaves the implied part out."""
    made = schedule(clock.now(), schedule_id, rrule=text)
    store.schedules.insert(made)
    store.mongo.collection("schedules").update_one(
        {"_id": schedule_id}, {"$set": {"rrule": text, "pinned": text}}
    )


def test_an_older_schedule_keeps_its_occurrences_and_warns(client: FlaskClient, store: Store) -> None:
    for schedule_id, (text, before, _) in PINNED.items():
        stored_long_ago(store, schedule_id, text)
        assert first(client, schedule_id) == before
        shown = client.get(f"/api/schedules/{schedule_id}").get_json()
        assert any("made by an earlier release" in warning for warning in shown["warnings"])
        for path in ("pause", "resume"):
            client.post(f"/api/schedules/{schedule_id}/{path}")
        assert client.put(f"/api/schedules/{schedule_id}", json={"name": "renamed"}).status_code == 200
        assert client.put(f"/api/schedules/{schedule_id}", json={"rrule": text}).status_code == 200
        assert first(client, schedule_id) == before


def test_an_export_of_an_older_schedule_fires_the_same_where_it_is_taken(
    client: FlaskClient, store: Store
) -> None:
    for schedule_id, (text, before, _) in PINNED.items():
        stored_long_ago(store, schedule_id, text)
        lines: list[dict[str, Any]] = list(
            map(json.loads, client.get("/api/schedules/export").text.splitlines())
        )
        (line,) = [line for line in lines if line["id"] == schedule_id]
        taken = client.post("/api/schedules", json=line | {"id": f"{schedule_id}-2"})
        assert taken.status_code == 201, taken.text
        assert first(client, f"{schedule_id}-2") == before
        assert not any("earlier release" in warning for warning in taken.get_json()["warnings"])


def test_a_new_rule_and_an_edited_one_are_read_as_the_rfc_says(client: FlaskClient, store: Store) -> None:
    for schedule_id, (text, _, after) in PINNED.items():
        preview = client.post("/api/schedules/preview", json={"rrule": text, "limit": 3}).get_json()
        assert [one["run_time"][:10].replace("-", "") for one in preview["occurrences"]] == after
        stored_long_ago(store, schedule_id, text)
        edited = client.put(f"/api/schedules/{schedule_id}", json={"rrule": text.replace("\n", "\r\n")})
        assert edited.status_code == 200
        assert first(client, schedule_id) == after
        stored = store.mongo.collection("schedules").find_one({"_id": schedule_id})
        assert stored is not None
        # Spelled out: another release, earlier or later, reads the same.
        assert "BYMONTH=1;" in stored["pinned"] or "BYDAY=WE" in stored["pinned"]
