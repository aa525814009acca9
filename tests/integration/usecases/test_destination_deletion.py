"""A destination is deleted while others begin to use it: one of the two always sees the other."""

import random
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.clock import clock
from scheduler_app.domain.action import Action
from scheduler_app.domain.destination import Destination, DestinationDraft
from scheduler_app.domain.errors import Conflict, InvalidField, StaleVersion
from scheduler_app.domain.ids import TENANT, WholeId
from scheduler_app.domain.message import Timing
from scheduler_app.domain.message_draft import MessageDraft
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.store import Store
from scheduler_app.usecases.deeds import named as named_by_drafts
from scheduler_app.usecases.deeds.creation import Creation, Preconditions
from scheduler_app.usecases.deeds.destinations import DestinationService
from scheduler_app.usecases.deeds.messages import MessageQuota, MessageService, ScheduleMessageResult
from scheduler_app.usecases.deeds.schedules import ScheduleService
from tests.builders import draft

ROUNDS = 40


def allow(action: Action) -> None:
    """Every address may be called."""


def nothing(items: Sequence[Any], now: datetime) -> None:
    """Nobody delivers."""


@pytest.fixture
def destinations(store: Store) -> DestinationService:
    return DestinationService(store, allow, lambda: "", None, None)


@pytest.fixture
def messages(store: Store) -> MessageService:
    return MessageService(store, nothing, 3, allow, lambda: "", MessageQuota(store, 0))


@pytest.fixture
def creation(store: Store) -> Creation:
    return Creation(store, nothing, 3, allow, lambda: "")


@pytest.fixture
def manager(store: Store) -> ScheduleService:
    def expand_until(schedule: Schedule, until: datetime) -> None:
        """No event is made."""

    return ScheduleService(store, expand_until, nothing, nothing, allow, lambda: "")


def put(store: Store, name: str = "d") -> None:
    now = clock.now()
    assert store.destinations.insert(
        Destination(id=WholeId(name), url="http://127.0.0.1:9/", created_at=now, updated_at=now)
    )


def asked(message_id: str, **fields: Any) -> MessageDraft:
    later = Timing(scheduled_at=clock.now() + timedelta(days=1))
    return MessageDraft(id=message_id, draft=ScheduleDraft(**fields), timing=later)


def named(**fields: Any) -> ScheduleDraft:
    return draft(url=NOT_GIVEN, rrule="DTSTART:20400101T000000Z\nRRULE:FREQ=DAILY", **fields)


@pytest.fixture
def deleted_between(destinations: DestinationService, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The destination `d` is deleted after the next check of who names it."""

    def prepare() -> None:
        check = named_by_drafts._check
        left = [True]

        def then_delete(*args: Any) -> None:
            check(*args)
            if left.pop() if left else False:
                destinations.delete(WholeId("d"))

        monkeypatch.setattr(named_by_drafts, "_check", then_delete)

    return prepare


def living(store: Store) -> int:
    in_use = store.destinations.in_use("d")
    return in_use + store.destinations.messages_of("d")


def test_a_message_that_comes_too_late_is_not_made(
    store: Store, messages: MessageService, deleted_between: Callable[[], None]
) -> None:
    put(store)
    deleted_between()
    with pytest.raises(InvalidField, match="deleted at this moment") as refusal:
        messages.schedule(TENANT, asked("m1", destination="d"), clock.now())
    assert refusal.value.field == "destination"
    assert living(store) == 0
    put(store)
    assert messages.schedule(TENANT, asked("m1", destination="d"), clock.now()).created


def test_of_a_bulk_only_what_names_it_is_not_made(
    store: Store, messages: MessageService, deleted_between: Callable[[], None]
) -> None:
    put(store)
    put(store, "other")
    deleted_between()
    fields: list[dict[str, Any]] = [
        {"destination": "d"},
        {"destination": "other"},
        {"url": "http://127.0.0.1:9/"},
        {"url": "http://127.0.0.1:9/", "on_failure": "d"},
    ]
    drafts = [asked(f"m{number}", **each) for number, each in enumerate(fields)]
    made = messages.schedule_many(TENANT, drafts, clock.now())
    assert [getattr(each, "field", isinstance(each, ScheduleMessageResult)) for each in made] == [
        *("destination", True, True),
        "on_failure",
    ]
    assert living(store) == 0


def test_a_schedule_that_comes_too_late_is_not_made(
    store: Store, creation: Creation, deleted_between: Callable[[], None]
) -> None:
    put(store)
    deleted_between()
    with pytest.raises(InvalidField, match="deleted at this moment"):
        creation.create(TENANT, named(destination="d"), clock.now(), schedule_id="s1")
    assert store.schedules.get("s1") is None
    put(store)
    deleted_between()
    drafts = [("s2", named(destination="d")), ("s3", draft())]
    refused, made = creation.create_many(TENANT, drafts, clock.now())
    assert isinstance(refused, InvalidField)
    assert isinstance(made, Schedule)
    assert living(store) == 0


def test_an_edit_that_comes_too_late_says_so(
    store: Store, creation: Creation, manager: ScheduleService, deleted_between: Callable[[], None]
) -> None:
    put(store)
    creation.create(TENANT, draft(), clock.now(), schedule_id="s1")
    deleted_between()
    with pytest.raises(Conflict, match="on_failure was deleted at this moment"):
        manager.edit("s1", ScheduleDraft(on_failure="d"), clock.now())


def test_a_destination_that_is_being_deleted_is_named_by_nothing_new_and_still_delivers(
    store: Store, messages: MessageService, destinations: DestinationService
) -> None:
    put(store)
    assert store.destinations.begin_deletion("d")
    with pytest.raises(InvalidField, match="there is no destination d"):
        messages.schedule(TENANT, asked("m1", destination="d"), clock.now())
    assert "d" in store.destinations.for_delivery(["d"])
    # Whoever began that died. A deletion, or a change, ends it.
    now = clock.now()
    whole = DestinationDraft(url="http://127.0.0.1:9/")
    destinations.put(WholeId("d"), whole, now, conditions=Preconditions())
    assert messages.schedule(TENANT, asked("m1", destination="d"), now).created


def test_a_deletion_that_is_refused_leaves_everything_as_it_was(
    store: Store, messages: MessageService, destinations: DestinationService
) -> None:
    put(store)
    before = store.destinations.get("d")
    messages.schedule(TENANT, asked("m1", destination="d"), clock.now())
    with pytest.raises(Conflict, match="1 message waits"):
        destinations.delete(WholeId("d"))
    assert store.destinations.get("d") == before


def test_a_change_overtakes_a_deletion(store: Store, destinations: DestinationService) -> None:
    put(store)
    assert store.destinations.begin_deletion("d")
    destinations.edit(WholeId("d"), DestinationDraft(paused=True), clock.now())
    assert not store.destinations.delete("d", version=1)


def test_deletions_and_messages_race_and_no_message_is_left_without_its_destination(
    store: Store, messages: MessageService, destinations: DestinationService
) -> None:
    outcomes = set[str]()

    def schedule(number: int) -> None:
        try:
            messages.schedule(TENANT, asked(f"m{number}", destination="d"), clock.now())
            outcomes.add("made")
        except InvalidField:
            outcomes.add("refused")

    def delete() -> None:
        threading.Event().wait(random.uniform(0, 0.004))
        try:
            destinations.delete(WholeId("d"))
            outcomes.add("deleted")
        except (Conflict, StaleVersion):
            outcomes.add("kept")

    for number in range(ROUNDS):
        put(store)
        racers = [threading.Thread(target=schedule, args=(number,)), threading.Thread(target=delete)]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        there = store.destinations.get("d")
        assert there is not None or living(store) == 0
        store.mongo.collection("events").delete_many({})
        store.mongo.collection("destinations").delete_many({})
    assert {"made", "refused"} & outcomes
