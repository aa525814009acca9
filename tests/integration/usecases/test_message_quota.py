"""How many messages a tenant may have scheduled for later."""

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta

import pytest

from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.domain.action import Action
from scheduler_app.domain.errors import Conflict, QuotaExceeded
from scheduler_app.domain.event import Event
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.message import Timing
from scheduler_app.domain.message_draft import MessageDraft
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.store import Store
from scheduler_app.usecases.deeds.messages import (
    COUNT_LEAST_SECONDS,
    MOST_TENANTS,
    MessageQuota,
    MessageService,
    ScheduleMessageResult,
)

HOUR = timedelta(hours=1)


class Elapsed:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def elapsed() -> Elapsed:
    return Elapsed()


@pytest.fixture
def service(store: Store, elapsed: Elapsed) -> MessageService:
    def dispatch(events: Sequence[Event], now: datetime) -> None:
        """Nobody delivers."""

    def allow(action: Action) -> None:
        """Every address may be called."""

    quota = MessageQuota(store, 3, elapsed=elapsed)
    return MessageService(store, dispatch, 3, allow, lambda: "", quota)


def draft(message_id: str, *, at: timedelta | None = HOUR, url: str = "http://127.0.0.1:9/") -> MessageDraft:
    timing = (
        Timing() if at is None else Timing(scheduled_at=datetime(2040, 1, 1, tzinfo=clock.now().tzinfo) + at)
    )
    return MessageDraft(id=message_id, draft=ScheduleDraft(url=url), timing=timing)


def fill(service: MessageService, now: datetime) -> None:
    for number in range(3):
        assert service.schedule(TENANT, draft(f"m{number}"), now).created


def test_one_message_more_than_the_quota_is_refused(service: MessageService) -> None:
    now = clock.now()
    fill(service, now)
    with pytest.raises(QuotaExceeded, match=r"3 messages scheduled for later.* MAX_MESSAGES"):
        service.schedule(TENANT, draft("m3"), now)
    assert service.schedule("acme", draft("m3"), now).created, "a quota of its own"


def test_a_message_that_is_known_is_answered_beyond_the_quota(service: MessageService) -> None:
    now = clock.now()
    fill(service, now)
    assert not service.schedule(TENANT, draft("m1"), now).created
    with pytest.raises(Conflict):
        service.schedule(TENANT, draft("m1", url="http://127.0.0.1:9/other"), now)


def test_a_message_for_now_waits_for_nobody(service: MessageService) -> None:
    now = clock.now()
    fill(service, now)
    assert service.schedule(TENANT, draft("now", at=None), now).created


def test_a_bulk_is_taken_as_far_as_there_is_room(service: MessageService) -> None:
    now = clock.now()
    assert service.schedule(TENANT, draft("m0"), now).created
    asked = [draft("m0"), draft("m1"), draft("n", at=None), draft("m2"), draft("m3"), draft("m0")]
    made = service.schedule_many(TENANT, asked, now)
    shown = [
        each.created if isinstance(each, ScheduleMessageResult) else type(each).__name__ for each in made
    ]
    # The first one is there already, and takes its place until that is known.
    assert shown == [False, True, True, "QuotaExceeded", "QuotaExceeded", False]
    assert service.schedule(TENANT, draft("m2"), now).created


def test_what_was_counted_is_known_for_some_seconds(service: MessageService, elapsed: Elapsed) -> None:
    now = clock.now()
    fill(service, now)
    service.cancel("msg_m0", now)
    with pytest.raises(QuotaExceeded):
        service.schedule(TENANT, draft("m3"), now)
    elapsed.now += COUNT_LEAST_SECONDS
    assert service.schedule(TENANT, draft("m3"), now).created


def test_counts_of_tenants_are_bounded(store: Store, elapsed: Elapsed) -> None:
    quota = MessageQuota(store, 3, elapsed=elapsed)
    for number in range(MOST_TENANTS + 1):
        quota.take(f"t{number}", 1, clock.now())
    assert len(quota._counts) <= MOST_TENANTS


def test_without_a_quota_nothing_is_counted(settings: Settings) -> None:
    with closing(Store(settings)) as store:
        quota = MessageQuota(store, 0)
    assert quota.take(TENANT, 1_000, clock.now()) == 1_000, "of a store that is closed"
