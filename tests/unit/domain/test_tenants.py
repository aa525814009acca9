import pytest

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import from_id, manual
from scheduler_app.domain.ids import TENANT, event_id, schedule_of, tenant_of, whole_id
from tests.builders import schedule
from tests.integration.conftest import NOON

TENANTS = [TENANT, "acme", "a-1-manual-1", "1"]


def test_the_default_tenant_stands_in_no_id() -> None:
    assert whole_id(TENANT, "nightly") == "nightly"
    assert whole_id("acme", "nightly") == "acme:nightly"


@pytest.mark.parametrize("tenant", TENANTS)
def test_every_id_tells_its_tenant(tenant: str) -> None:
    schedule_id = whole_id(tenant, "a-1-manual-2")
    scheduled, asked_for = event_id(schedule_id, 3, NOON), manual(schedule_id, 3, NOON)
    told = from_id(scheduled)
    assert told is not None
    assert (told.schedule_id, told.revision, told.run_time) == (schedule_id, 3, NOON)
    assert {tenant_of(each) for each in (schedule_id, scheduled, asked_for.id)} == {tenant}
    assert (told.tenant, asked_for.tenant, schedule(NOON, schedule_id).tenant) == (tenant, tenant, tenant)
    assert schedule_of(scheduled) == schedule_of(asked_for.id) == schedule_id


@pytest.mark.parametrize("tenant", ["", "a:b", "-a", "Acme", "a.b", "a b", "ä", "a\n", "a" * 64])
def test_a_tenant_that_would_break_ids_is_refused(tenant: str) -> None:
    with pytest.raises(InvalidField, match="lower-case letters") as refused:
        whole_id(tenant, "nightly")
    assert refused.value.field == "tenant"


def test_nobody_names_a_tenant_in_an_id() -> None:
    for tenant in (TENANT, "acme"):
        with pytest.raises(InvalidField, match="':'"):
            whole_id(tenant, "acme:nightly")
