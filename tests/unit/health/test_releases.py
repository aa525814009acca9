"""Processes of an older release are named while they are there."""

from datetime import UTC, datetime

from scheduler_app.health.check import Status
from scheduler_app.health.processes import check_releases
from scheduler_app.store.processes import ProcessRecord

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def node(role: str, name: str, level: int) -> ProcessRecord:
    return ProcessRecord(name, role, NOON, 2.0, name=name, policy_level=level)


def test_those_of_an_older_release_are_named() -> None:
    found = check_releases([node("worker", "old", 0), node("beat", "new", 1), node("doctor", "me", 0)], 1)
    assert (found.status, found.facts["older"]) == (Status.NOTE, ["old"])
    assert "worker old" in found.found
    assert "kill switches" in found.found


def test_a_newer_one_obeys_all_that_this_one_does() -> None:
    assert check_releases([node("worker", "newer", 2), node("api", "same", 1)], 1).status is Status.OK
