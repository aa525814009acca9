"""A rule in local time across a clock change, from the rule to the request, with the clock given."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.store import Store
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.worker import Pipeline
from tests.acceptance.journal import Journal
from tests.builders import schedule
from tests.executors import executors
from tests.processes import PATIENCE_SECONDS

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("midnight", "local", "options", "fired"),
    [
        # New York, 8 March 2026: 02:00 to 03:00 does not exist. 02:30 is read with the offset before the gap.
        (datetime(2026, 3, 8, 5, tzinfo=UTC), "0230", {}, ["2026-03-08T07:30:00Z"]),
        (datetime(2026, 3, 8, 5, tzinfo=UTC), "0230", {"gap": "skip"}, []),
        # 1 November 2026: 01:00 to 02:00 exists twice.
        (datetime(2026, 11, 1, 4, tzinfo=UTC), "0230", {}, ["2026-11-01T07:30:00Z"]),
        (datetime(2026, 11, 1, 4, tzinfo=UTC), "0130", {}, ["2026-11-01T05:30:00Z"]),
        (datetime(2026, 11, 1, 4, tzinfo=UTC), "0130", {"overlap": "last"}, ["2026-11-01T06:30:00Z"]),
    ],
)
def test_a_daily_rule_fires_once_on_the_day_of_a_clock_change(
    store: Store, midnight: datetime, local: str, options: dict[str, str], fired: list[str]
) -> None:
    time = midnight
    journal = Journal()
    pipeline = Pipeline(
        store,
        executors(origin_concurrency=10),
        now=lambda: time,
        worker="w1",
        horizon_seconds=5,
        max_events=100,
    )
    pipeline.start()
    try:
        rule = f"DTSTART;TZID=America/New_York:20260101T{local}00\nRRULE:FREQ=DAILY"
        store.schedules.insert(schedule(midnight, url=journal.url("/daily"), rrule=rule, **options))
        made = Expansion(store, timeframe_seconds=DAY.total_seconds()).expand_page(midnight).events
        for event in made:
            time = event.due_at
            assert pipeline.delivery.deliver([event.id]) == 1
            assert pipeline.wait_until_empty(PATIENCE_SECONDS)
        assert [call.run_time for call in journal.calls["/daily"]] == fired
    finally:
        pipeline.stop()
        journal.close()
