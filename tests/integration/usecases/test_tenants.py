"""Two tenants who chose the same id, through the use cases: neither meets the other."""

from datetime import datetime, timedelta

import pytest

from scheduler_app.actions.http import new_secret
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound
from scheduler_app.domain.ids import TENANT, name_of, whole_id
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.states import LIVING, State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.store.paging import PageRequest
from scheduler_app.usecases.deeds.creation import Creation
from scheduler_app.usecases.deeds.events import EventService
from scheduler_app.usecases.deeds.schedules import ScheduleService
from scheduler_app.usecases.duties.expansion import Expansion
from tests.builders import draft

SECOND = timedelta(seconds=1)
TENANTS = (TENANT, "acme")


@pytest.fixture
def expansion(store: Store) -> Expansion:
    return Expansion(store, timeframe_seconds=10)


@pytest.fixture
def creation(store: Store) -> Creation:
    return Creation(store, lambda schedules, now: None, 3, lambda url: None, new_secret)


@pytest.fixture
def manager(store: Store, expansion: Expansion) -> ScheduleService:
    return ScheduleService(
        store=store,
        expand_until=lambda schedule, until: expansion.expand_up_to(schedule, until).left_to_beats,
        expand_and_dispatch=lambda schedules, now: None,
        dispatch=lambda events, now: None,
        check_action=lambda action: None,
        new_secret=new_secret,
    )


@pytest.fixture
def events(store: Store) -> EventService:
    return EventService(store, lambda events, now: None)


def waiting(store: Store, tenant: str) -> int:
    page = store.event_lists.page(
        tenant, PageRequest(limit=100), schedule_id=whole_id(tenant, "nightly"), states=LIVING
    )
    return len(page.rows)


def test_neither_blocks_nor_reaches_the_other_s_schedule(
    store: Store, now: datetime, creation: Creation, manager: ScheduleService, expansion: Expansion
) -> None:
    for tenant in TENANTS:
        creation.create(tenant, draft(), now, schedule_id=whole_id(tenant, "nightly"))
        with pytest.raises(Conflict):
            creation.create(tenant, draft(), now, schedule_id=whole_id(tenant, "nightly"))
    expansion.expand_page(now)
    assert [waiting(store, tenant) for tenant in TENANTS] == [9, 9]
    for meddle in (manager.pause, manager.resume, manager.delete, manager.unsign, manager.trigger):
        with pytest.raises(NotFound):
            meddle("acme-2:nightly", now)
    with pytest.raises(NotFound):
        manager.edit("acme-2:nightly", draft(name="mine now"), now)
    with pytest.raises(NotFound):
        manager.sign("acme-2:nightly", now, overlap=SECOND)
    assert [waiting(store, tenant) for tenant in TENANTS] == [9, 9]
    manager.delete("acme:nightly", now)
    assert [waiting(store, tenant) for tenant in TENANTS] == [9, 0]
    again = creation.create("acme", draft(), now, schedule_id="acme:nightly")
    assert (again.tenant, again.first_revision) == ("acme", 2)


def test_an_id_that_names_another_tenant_is_refused(creation: Creation, now: datetime) -> None:
    with pytest.raises(InvalidField, match="another tenant"):
        creation.create(TENANT, draft(), now, schedule_id="acme:nightly")
    (refused,) = creation.create_many("acme", [("nightly", draft())], now)
    assert isinstance(refused, InvalidField)
    assert refused.field == "id"
    with pytest.raises(InvalidField, match="':'"):
        creation.create(TENANT, draft(), now, schedule_id=whole_id(TENANT, "acme:nightly"))


def test_ids_that_are_made_up_or_of_a_request_s_seed_name_their_tenant(
    creation: Creation, now: datetime
) -> None:
    first = creation.create("acme", draft(), now)
    seeded = creation.create("acme", draft(), now, request_seed="5" * 24)
    again = creation.create("acme", draft(), now, request_seed="5" * 24)
    (bulk,) = creation.create_many("acme", [(None, draft())], now, request_seed="6" * 24)
    assert isinstance(bulk, Schedule)
    assert (first.tenant, bulk.tenant) == ("acme", "acme")
    assert (seeded.id, bulk.id) == ("acme:" + "5" * 24, "acme:" + "6" * 24 + "-0")
    assert again == seeded


def test_an_event_of_a_tenant_goes_its_whole_way(
    store: Store, now: datetime, creation: Creation, events: EventService, expansion: Expansion
) -> None:
    creation.create("acme", draft(), now, schedule_id="acme:nightly")
    first, *_ = expansion.expand_page(now).events
    due = now + SECOND
    token, taken = store.outbox.take(store.outbox.due(due, limit=9), due, due, lease_seconds=0)
    assert [each.id for each in taken] == [first.id]
    assert store.outbox.put_back_abandoned(due, limit=9) == 1
    token, taken = store.outbox.take(store.outbox.due(due, limit=9), due, due, lease_seconds=600)
    store.outbox.sent(token)
    token, (claimed,) = store.claims.claim([first.id], until=due, now=due, lease_seconds=0, worker="w")
    assert (claimed.tenant, claimed.schedule_id) == ("acme", "acme:nightly")
    assert store.recoveries.recover_workers(due, delay_seconds=0, limit=9) == ([first.id], [])
    token, (claimed,) = store.claims.claim([first.id], until=due, now=due, lease_seconds=600, worker="w")
    assert claimed.tenant == "acme"
    dead = OutcomeRecord(first.id, token, State.ERROR, "said", None, {"number": 1, "error": "no"}, due)
    assert store.outcomes.record([dead]) == []
    page = events.redrive_page(TENANT, PageRequest(limit=9), due)
    assert (page.count, page.skipped) == (0, [])
    for meddle in (events.redrive, events.cancel):
        with pytest.raises(NotFound):
            meddle(whole_id(TENANT, name_of(first.id)), due)
    assert events.redrive_page("acme", PageRequest(limit=9), due).count == 1
    assert events.cancel(first.id, due).state is State.CANCELLED
