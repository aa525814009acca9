"""Which events wait in another queue than the one that their destination names."""

from datetime import UTC, datetime

from scheduler_app.domain.action import CALLBACKS
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.ids import WholeId
from scheduler_app.store.destinations import CorruptDestination
from scheduler_app.store.events.outbox import DueEvent
from scheduler_app.usecases.duties.dispatch import misplaced_events

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def destination(name: str, queue: str | None) -> Destination:
    return Destination(
        id=WholeId(name), url="http://127.0.0.1:9/", queue=queue, created_at=NOON, updated_at=NOON
    )


def due(name: str, *, queue_by_destination: bool = False) -> DueEvent:
    return DueEvent(NOON, name, queue_by_destination=queue_by_destination)


def test_events_of_callbacks_belong_into_the_queue_that_their_destination_names() -> None:
    waiting = {"gone": [due("a")], "bent": [due("b")], "eu": [due("c"), due("d")], "none": [due("e")]}
    found: dict[str, Destination | CorruptDestination] = {
        "bent": CorruptDestination("bent", "bent"),
        "eu": destination("eu", "eu"),
        "none": destination("none", None),
    }
    assert misplaced_events(waiting, found, CALLBACKS) == {"eu": ["c", "d"]}


def test_events_of_another_queue_belong_there_unless_a_destination_has_named_it() -> None:
    moved, named = due("a", queue_by_destination=True), due("b")
    assert misplaced_events({"d": [moved, named]}, {"d": destination("d", "eu")}, "us") == {"eu": ["a"]}
    assert misplaced_events({"d": [moved, named]}, {"d": destination("d", None)}, "us") == {CALLBACKS: ["a"]}
    assert misplaced_events({"d": [moved, named]}, {"d": destination("d", "us")}, "us") == {}
