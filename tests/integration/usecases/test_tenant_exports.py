"""Exports of tenants: everything of one and nothing of another, in pages, with secrets only if asked for."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet

from scheduler_app.actions.http import new_secret
from scheduler_app.config import Settings
from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.ids import TENANT, whole_id
from scheduler_app.embedded import Mongod
from scheduler_app.store import Store, tenant_exports
from scheduler_app.store.tenant_documents import TenantDocuments
from scheduler_app.store.tenant_exports import EXPORTED, NOT_EXPORTED
from scheduler_app.usecases.deeds.creation import Creation
from scheduler_app.usecases.questions.tenant_exports import TenantExportService
from tests.builders import draft, event, message, notification_rule

SECOND = timedelta(seconds=1)
SECRET = "a-secret-of-theirs"


@pytest.fixture(params=["sealed", "plain"])
def kept(request: pytest.FixtureRequest, mongod_server: Mongod, database_name: str) -> Iterator[Store]:
    key = Fernet.generate_key().decode() if request.param == "sealed" else ""
    store = Store(Settings(mongo_uri=mongod_server.uri, mongo_database=database_name, secrets_key=key))
    store.prepare()
    yield store
    store.close()


def plant(store: Store, now: datetime, tenant: str) -> None:
    creation = Creation(store, lambda schedules, now: None, 3, lambda url: None, new_secret)
    for number in range(5):
        asked = draft(
            headers=(("Authorization", f"{SECRET} {tenant}"),), url=f"http://127.0.0.1:9/?k={SECRET}"
        )
        creation.create(tenant, asked, now, schedule_id=whole_id(tenant, f"s{number}"))
    store.events.insert(
        [event(now + each * SECOND, whole_id(tenant, "s1")) for each in range(5)], now, "made"
    )
    sent = message(now, tenant=tenant, headers=(("Authorization", f"{SECRET} {tenant}"),))
    assert store.messages.insert(sent, now) is not None
    rule = notification_rule(now, whole_id(tenant, "ops"), signing=Signing(f"whsec_{SECRET}", now))
    assert store.notification_rules.put(rule)


def exported(store: Store, tenant: str, now: datetime, *, with_secrets: bool = False) -> list[dict[str, Any]]:
    pages = TenantExportService(store).pages(tenant, now, with_secrets=with_secrets)
    return [json.loads(line) for page in pages for line in page.splitlines()]


@pytest.mark.parametrize("tenant", ["acme", TENANT])
def test_everything_of_one_tenant_is_exported_once(
    kept: Store, now: datetime, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_exports, "DOCUMENTS_A_PAGE", 2)
    for each in ("acme", "acme-2", TENANT):
        plant(kept, now, each)
    first, *lines, last = exported(kept, tenant, now)
    assert (first["rrule_scheduler_export"], first["tenant"], first["secrets"]) == (1, tenant, False)
    assert last["end"] is True
    assert {name: count for name, count in last["documents"].items() if count} == {
        "schedules": 5,
        "notifications": 1,
        "events": 6,
    }
    ids = [(each["collection"], each["document"]["_id"]) for each in lines]
    assert len(set(ids)) == len(ids) == 12
    assert {each["document"]["tenant"] for each in lines} == {tenant}
    order = [EXPORTED.index(name) for name, _ in ids]
    assert order == sorted(order)


def test_secrets_are_in_it_only_where_they_are_asked_for(kept: Store, now: datetime) -> None:
    plant(kept, now, "acme")
    without = exported(kept, "acme", now)
    assert SECRET not in json.dumps(without)
    assert "sealed" not in json.dumps([each["document"] for each in without[1:-1]])
    lacking = {each["collection"] for each in without[1:-1] if "left_out" in each}
    assert lacking == {"schedules", "notifications", "events"}
    whole = exported(kept, "acme", now, with_secrets=True)
    assert not any("left_out" in each for each in whole)
    kinds = {each["collection"] for each in whole if SECRET in json.dumps(each)}
    assert kinds == {"schedules", "notifications", "events"}
    assert "sealed" not in json.dumps([each["document"] for each in whole[1:-1]])


def test_what_cannot_be_opened_is_exported_without_its_secrets(
    store: Store, now: datetime, mongod_server: Mongod
) -> None:
    name = store.mongo.db.name
    lost = Settings(
        mongo_uri=mongod_server.uri, mongo_database=name, secrets_key=Fernet.generate_key().decode()
    )
    other = Store(lost)
    plant(other, now, "acme")
    other.close()
    lines = exported(store, "acme", now, with_secrets=True)[1:-1]
    reasons = {each["left_out"]["reason"] for each in lines if "left_out" in each}
    assert reasons == {"a stored secret is encrypted, and SECRETS_KEY is not set"}
    assert SECRET not in json.dumps(lines)


def test_what_a_claim_has_written_is_left_out(store: Store, now: datetime) -> None:
    made = event(now, "acme:s1")
    store.events.insert([made], now, "made")
    store.claims.claim([made.id], until=now, now=now, lease_seconds=60, worker="w")
    (line,) = exported(store, "acme", now, with_secrets=True)[1:-1]
    assert not {"owner", "lease_until", "dispatcher"} & line["document"].keys()


def test_every_collection_is_exported_or_left_out_by_name(store: Store) -> None:
    there = set(TenantDocuments(store.mongo).collections())
    assert there - NOT_EXPORTED <= set(EXPORTED)
    assert not set(EXPORTED) & NOT_EXPORTED
