"""Expansion is shared by tenant: however many schedules of one wait, another's are expanded in time."""

from datetime import datetime, timedelta

import pytest

from scheduler_app.domain.ids import TENANT, whole_id
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.tenant import Tenant
from scheduler_app.store import Store
from scheduler_app.usecases.duties.expansion import SCHEDULES_A_PAGE, Expansion
from tests.builders import schedule
from tests.examined import examined

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
#: More than a page shows.
HIDING = 2 * SCHEDULES_A_PAGE + SCHEDULES_A_PAGE // 2
TENANTS = (TENANT, "acme", "globex")


@pytest.fixture
def expansion(store: Store) -> Expansion:
    return Expansion(store, timeframe_seconds=600)


def hourly(tenant: str, name: str, first: datetime, now: datetime) -> Schedule:
    made_at = min(first, now) - SECOND
    rule = f"DTSTART:{first:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=HOURLY"
    return schedule(made_at, whole_id(tenant, name), rrule=rule)


def insert(store: Store, now: datetime, tenant: str, count: int, first: datetime) -> None:
    """Schedules of a tenant that is there; all fire at once."""
    store.tenants.put(Tenant(tenant, now))
    store.schedules.insert_many([hourly(tenant, f"s{number}", first, now) for number in range(count)])


@pytest.mark.parametrize("hog", TENANTS[:2])
@pytest.mark.parametrize(
    ("theirs", "other"),
    [
        (-40 * MINUTE, -20 * MINUTE),
        (10 * SECOND, 20 * SECOND),
        (-40 * MINUTE, 20 * SECOND),
        (MINUTE, 2 * MINUTE),
    ],
    ids=["both overdue", "both due soon", "due soon behind what is overdue", "both due later"],
)
def test_a_tenant_s_schedules_hide_no_other_tenant_s_single_one(
    store: Store, expansion: Expansion, now: datetime, hog: str, theirs: timedelta, other: timedelta
) -> None:
    insert(store, now, hog, HIDING, now + theirs)
    others = {whole_id(tenant, "single") for tenant in TENANTS if tenant != hog}
    for tenant in TENANTS:
        if tenant != hog:
            store.tenants.put(Tenant(tenant, now))
            store.schedules.insert(hourly(tenant, "single", now + other, now))
    page = expansion.expand_page(now)
    made = {each.schedule_id for each in page.events}
    assert others <= made
    assert SCHEDULES_A_PAGE // 2 < len(made) <= SCHEDULES_A_PAGE, "what the other has gets the rest"
    assert page.full


def test_two_tenants_with_more_than_a_page_share_it_and_hide_no_third(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    for place, tenant in enumerate(TENANTS[:2]):
        insert(store, now, tenant, HIDING, now - (40 - place) * MINUTE)
    insert(store, now, TENANTS[2], 1, now - MINUTE)
    made = [each.schedule_id for each in expansion.expand_page(now).events]
    assert whole_id(TENANTS[2], "s0") in made
    for tenant in TENANTS[:2]:
        assert len({each for each in made if each.startswith(whole_id(tenant, "s"))}) >= SCHEDULES_A_PAGE // 3


def test_in_the_end_all_are_expanded_each_once(store: Store, expansion: Expansion, now: datetime) -> None:
    insert(store, now, "acme", HIDING, now - MINUTE)
    insert(store, now, "globex", SCHEDULES_A_PAGE + 1, now - MINUTE)
    made = [each.schedule_id for each in expansion.expand_page(now).events]
    while page := expansion.expand_page(now).events:
        made += [each.schedule_id for each in page]
    assert len(made) == len(set(made)) == HIDING + SCHEDULES_A_PAGE + 1


def test_other_tenants_schedules_are_found_without_reading_the_documents_in_front_of_them(
    store: Store, expansion: Expansion, now: datetime
) -> None:
    insert(store, now, "acme", HIDING, now - 40 * MINUTE)
    insert(store, now, "globex", 1, now - MINUTE)
    _, seen = examined(store, lambda: expansion.expand_page(now))
    # Each of the page is read to be found and read once it is claimed; the single one is found twice.
    assert seen.documents <= 2 * SCHEDULES_A_PAGE + 2


@pytest.mark.parametrize("first", [-40 * MINUTE, MINUTE], ids=["overdue", "due later"])
def test_with_one_tenant_a_full_page_reads_what_it_did(
    store: Store, expansion: Expansion, now: datetime, first: timedelta
) -> None:
    store.schedules.insert_many([hourly(TENANT, f"s{n}", now + first, now) for n in range(HIDING)])
    expansion.expand_page(now)  # in which it finds that there are no tenants
    page, seen = examined(store, lambda: expansion.expand_page(now))
    assert page.claimed == SCHEDULES_A_PAGE
    assert seen.documents == 2 * SCHEDULES_A_PAGE
    assert SCHEDULES_A_PAGE * 2 <= seen.keys <= SCHEDULES_A_PAGE * 2 + 10
