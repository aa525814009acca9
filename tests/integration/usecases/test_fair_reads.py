"""When a beat looks for tenants, and how much of its time it spends on reading behind a backlog."""

from collections.abc import Collection
from datetime import datetime

import pytest

from scheduler_app.domain.tenant import Tenant
from scheduler_app.store import Store
from scheduler_app.store.events.outbox import DueEvent
from scheduler_app.usecases.duties import fair_reads
from scheduler_app.usecases.duties.fair_reads import (
    BEHIND_SHARE,
    TENANTS_LOOK_SECONDS,
    TenantLook,
    TenantTurns,
)


class Watch:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    made = Watch()
    monkeypatch.setattr(fair_reads, "monotonic", made)
    return made


def test_a_beat_looks_now_and_then_whether_there_are_tenants(
    store: Store, now: datetime, watch: Watch
) -> None:
    has_tenants, began = TenantLook(store.tenants), watch.now
    assert not has_tenants()
    store.tenants.put(Tenant("acme", now))
    watch.now = began + TENANTS_LOOK_SECONDS - 0.1
    assert not has_tenants()
    watch.now = began + TENANTS_LOOK_SECONDS
    assert has_tenants()


def test_a_beat_spends_a_share_of_its_time_on_reading_behind_what_fills_a_read(
    store: Store, now: datetime, watch: Watch
) -> None:
    store.tenants.put(Tenant("acme", now))
    found = [DueEvent(now, "acme:a"), DueEvent(now, "acme:b"), DueEvent(now, "c")]
    behind, read = DueEvent(now, "globex:d"), list[set[str]]()

    def read_but(tenants: Collection[str]) -> list[DueEvent]:
        read.append(set(tenants))
        watch.now += 2
        return [behind]

    turns, began = TenantTurns(store.tenants), watch.now

    def ids() -> list[str]:
        return [each.id for each in turns.of(found, read_but, full=3)]

    assert ids() == ["acme:a", "c", "globex:d", "acme:b"]
    watch.now = began + 2 * BEHIND_SHARE - 0.1
    assert ids() == ["acme:a", "c", "acme:b"]
    assert read == [{"acme", "default"}]
    watch.now = began + 2 * BEHIND_SHARE
    assert behind.id in ids()
