"""The lines of the audit that new schedules bring in their documents."""

from datetime import UTC, datetime

from scheduler_app.domain.act import Act, Actor, ActorKind
from scheduler_app.store.acting import acting
from scheduler_app.store.schedules.owed_lines import created_lines
from tests.builders import schedule

NOW = datetime(2026, 11, 27, tzinfo=UTC)


def test_what_an_act_says_is_made_once_for_all_its_lines() -> None:
    with acting(Act(Actor(ActorKind.KEY, "ops"), "a new customer", "req-1")):
        first, second = created_lines([schedule(NOW, "one"), schedule(NOW, "acme:two")])
    assert first["by"] is second["by"]
    assert (first["at"], first["reason"], first["request_id"]) == (second["at"], "a new customer", "req-1")
    assert [(each["tenant"], each["resource"]) for each in (first, second)] == [
        ("default", "schedule/one"),
        ("acme", "schedule/acme:two"),
    ]
    assert first["_id"] != second["_id"]
