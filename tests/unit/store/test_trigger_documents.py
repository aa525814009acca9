"""Triggers in documents: of the release before, of a newer one, and bent by hand."""

from datetime import UTC, datetime
from typing import Any

import pytest

from scheduler_app.domain.stored_fields import Corrupt, Newer
from scheduler_app.domain.triggers import BY_NAME, TriggerContext, Value, new_trigger
from scheduler_app.store.schedules.trigger_documents import NEVER, read_trigger, trigger_document

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
LATER = datetime(2026, 7, 1, 12, tzinfo=UTC)
CHOICES = {"timezone": "UTC", "gap": "shift", "overlap": "first"}


def document(**given: Value) -> dict[str, Any]:
    made = trigger_document(new_trigger(given, TriggerContext(NOON)))
    return {name: value for name, value in made.items() if value is not None}


def test_rules_and_instants_are_written_as_the_release_before_writes_them() -> None:
    assert document(rrule="FREQ=DAILY") == CHOICES | {
        "rrule": "FREQ=DAILY",
        "pinned": "DTSTART:20260302T120001Z\nRRULE:FREQ=DAILY",
    }
    assert document(run_at=LATER) == CHOICES | {"run_at": LATER}


def test_other_kinds_stand_beside_what_the_release_before_reads() -> None:
    delayed, waiting = document(delay_seconds=90), document(on_demand=True)
    assert delayed["run_at"] == datetime(2026, 3, 2, 12, 1, 30, tzinfo=UTC)
    assert delayed["trigger"]["written"] == {"delay_seconds": 90}
    assert waiting["run_at"] == NEVER
    assert "rrule" not in document(every_seconds=5)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"rrule": "FREQ=DAILY", "pinned": "DTSTART:20260302T120001Z\nRRULE:FREQ=DAILY"}, "rrule"),
        ({"run_at": LATER}, "run_at"),
    ],
)
def test_what_the_release_before_writes_over_another_kind_counts(fields: dict[str, Any], kind: str) -> None:
    """It knows no `trigger`, and leaves the one that was there."""
    for before in (document(on_demand=True), document(delay_seconds=90), document(every_seconds=5)):
        found = read_trigger(CHOICES | {"trigger": before["trigger"]} | fields)
        assert found.kind is BY_NAME[kind]
        assert found.fires_by_itself


@pytest.mark.parametrize(
    ("bent", "named"),
    [
        ("every second", "trigger is"),
        ({"kind": 5}, "trigger.kind"),
        ({"kind": "every_seconds"}, "trigger.written"),
        ({"kind": "every_seconds", "written": {}}, "trigger.written has nothing"),
        ({"kind": "every_seconds", "written": {"every_seconds": 0}}, "at least 1"),
        ({"kind": "every_seconds", "written": {"every_seconds": "5"}}, "trigger.written.every_seconds"),
        ({"kind": "every_seconds", "written": {"every_seconds": 5, "phrase": "x"}}, "phrase"),
        ({"kind": "every_seconds", "written": {"every_seconds": 5, "start_at": "x"}}, "start_at"),
        ({"kind": "every_seconds", "written": {"every_seconds": 5}, "warnings": "x"}, "trigger.warnings"),
        ({"kind": "every_seconds", "written": {"every_seconds": 5}, "on_holiday": "x"}, "on_holiday"),
    ],
)
def test_a_bent_trigger_is_corrupt_and_named(bent: Any, named: str) -> None:
    with pytest.raises(Corrupt, match=named) as found:
        read_trigger(document(every_seconds=5) | {"trigger": bent})
    assert not isinstance(found.value, Newer)


def test_a_kind_of_a_newer_release_is_left_to_its_processes() -> None:
    with pytest.raises(Newer, match="moon_phase"):
        read_trigger(document(every_seconds=5) | {"trigger": {"kind": "moon_phase", "written": {}}})


def test_a_whole_number_that_a_shell_wrote_is_a_whole_number() -> None:
    bent = {"kind": "every_seconds", "written": {"every_seconds": 5.0}}
    assert read_trigger(document(every_seconds=5) | {"trigger": bent}).written == {"every_seconds": 5}
