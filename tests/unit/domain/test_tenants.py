import pytest

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import from_id, manual
from scheduler_app.domain.ids import TENANT, event_id, name_of, schedule_of, tenant_of, whole_id
from scheduler_app.domain.kill_switch import Scope, Target
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


@pytest.mark.parametrize("tenant", TENANTS)
@pytest.mark.parametrize(
    "target", [(Scope.ALL, ""), (Scope.TAG, "t"), (Scope.TAG, "a:b/c"), (Scope.DESTINATION, "d")]
)
def test_a_target_is_known_by_its_key_and_by_that_of_older_releases(
    tenant: str, target: tuple[Scope, str]
) -> None:
    made = Target(tenant, *target)
    assert tenant_of(made.key) == tenant
    assert [Target.of(key) for key in made.keys] == [made, made]


def test_the_default_tenant_stands_in_no_key() -> None:
    assert Target(TENANT, Scope.ALL).keys == ("all", "default/all")
    assert Target("acme", Scope.TAG, "t").keys == ("acme:tag/t", "acme/tag/t")


@pytest.mark.parametrize("tenant", ["", "a:b", "-a", "Acme", "a.b", "a b", "ä", "a\n", "a" * 64])
def test_a_tenant_that_would_break_ids_is_refused(tenant: str) -> None:
    with pytest.raises(InvalidField, match="lower-case letters") as refused:
        whole_id(tenant, "nightly")
    assert refused.value.field == "tenant"


@pytest.mark.parametrize("tenant", TENANTS)
@pytest.mark.parametrize("name", ["nightly", "acme:nightly", ":", "", "a/b"])
def test_an_id_has_its_tenant_whatever_the_name_says(tenant: str, name: str) -> None:
    made = whole_id(tenant, name)
    assert (tenant_of(made), name_of(made)) == (tenant, name)
