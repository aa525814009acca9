"""Ranges that edits left to beats are made up in turn among tenants: ten thousand edits of one tenant do not
hold up another's single one."""

from datetime import datetime, timedelta

import pytest

from scheduler_app.domain.ids import TENANT, tenant_of, whole_id
from scheduler_app.domain.schedule import OwedRange
from scheduler_app.domain.tenant import Tenant
from scheduler_app.store import Store
from scheduler_app.store.schedules.trigger_documents import to_owed_document
from scheduler_app.usecases.duties import owed_expansion as owing_expansion
from scheduler_app.usecases.duties.owed_expansion import (
    OWING_SCHEDULES_A_PAGE,
    OWING_SCHEDULES_READ,
    OwedExpansion,
)
from tests.builders import schedule
from tests.examined import examined

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
#: More than a beat reads, and more than it reads behind what fills that.
HIDING = 10 * OWING_SCHEDULES_READ


@pytest.fixture
def owed_expansion(store: Store) -> OwedExpansion:
    return OwedExpansion(store, occurrences_a_page=10 * OWING_SCHEDULES_A_PAGE)


def owing(store: Store, now: datetime, tenant: str, count: int, *, since: timedelta) -> None:
    """Schedules of a tenant, each of which owes an occurrence a second since then."""
    store.tenants.put(Tenant(tenant, now))
    made = [schedule(now - since, whole_id(tenant, f"s{number}")) for number in range(count)]
    store.schedules.insert_many(made)
    owed = to_owed_document(OwedRange(1, made[0].trigger, now - since, now))
    ids = [each.id for each in made]
    store.mongo.collection("schedules").update_many({"_id": {"$in": ids}}, {"$set": {"owed": [owed]}})


def made_for(store: Store) -> set[str]:
    """The schedules that have events."""
    return set(store.mongo.collection("events").distinct("schedule_id"))


@pytest.mark.parametrize("hog", [TENANT, "acme"])
def test_a_tenant_s_many_edits_do_not_hold_up_another_s_single_one(
    store: Store, owed_expansion: OwedExpansion, now: datetime, hog: str
) -> None:
    owing(store, now, hog, HIDING, since=2 * HOUR)
    others = {TENANT, "acme", "globex"} - {hog}
    for tenant in others:
        owing(store, now, tenant, 1, since=HOUR)
    assert owed_expansion.expand_page(now)
    made = made_for(store)
    assert {whole_id(tenant, "s0") for tenant in others} <= made
    assert len(made) == OWING_SCHEDULES_A_PAGE, "what others have not gets the rest"


def test_a_page_is_shared_by_turns_where_there_are_more_tenants_than_it_has_places(
    store: Store, owed_expansion: OwedExpansion, now: datetime
) -> None:
    tenants = [f"t{number}" for number in range(OWING_SCHEDULES_A_PAGE + 2)]
    for number, tenant in enumerate(tenants):
        # Those behind stay behind: what a page makes of a range is far less than what lies between them.
        owing(store, now, tenant, 2, since=HOUR * (len(tenants) - number))
    owed_expansion.expand_page(now)
    first = {tenant_of(each) for each in made_for(store)}
    assert first == set(tenants[:OWING_SCHEDULES_A_PAGE]), "those furthest behind come first"
    owed_expansion.expand_page(now)
    assert {tenant_of(each) for each in made_for(store)} == set(tenants)


def test_a_beat_remembers_so_many_turns_and_no_more(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owing_expansion, "TURNS_REMEMBERED", 3)
    made = OwedExpansion(store)
    owing(store, now, "acme", OWING_SCHEDULES_A_PAGE, since=MINUTE)
    made.expand_page(now)
    assert list(made._served) == ["acme"] * 3


def test_others_are_found_without_reading_the_documents_in_front_of_them(
    store: Store, owed_expansion: OwedExpansion, now: datetime
) -> None:
    owing(store, now, "acme", HIDING, since=2 * HOUR)
    owing(store, now, "globex", 1, since=HOUR)
    _, seen = examined(store, lambda: owed_expansion.expand_page(now))
    # Those that were read, the single one, the page once it is claimed, and a look for tenants.
    assert seen.documents <= OWING_SCHEDULES_READ + 1 + OWING_SCHEDULES_A_PAGE + 1
    assert whole_id("globex", "s0") in made_for(store)


def test_with_one_tenant_a_page_reads_what_it_chooses_from(
    store: Store, owed_expansion: OwedExpansion, now: datetime
) -> None:
    made = [schedule(now - HOUR, f"s{number}") for number in range(HIDING)]
    store.schedules.insert_many(made)
    owed = to_owed_document(OwedRange(1, made[0].trigger, now - HOUR, now))
    store.mongo.collection("schedules").update_many({}, {"$set": {"owed": [owed]}})
    owed_expansion.expand_page(now)  # in which it finds that there are no tenants
    _, seen = examined(store, lambda: owed_expansion.expand_page(now))
    assert seen.documents <= OWING_SCHEDULES_READ + OWING_SCHEDULES_A_PAGE
    assert seen.keys <= 2 * OWING_SCHEDULES_READ
