"""Which events travel together."""

from datetime import UTC, datetime, timedelta

from scheduler_app.dispatch import CLAIM_AHEAD, EVENTS_A_BATCH, grouped
from scheduler_app.store.outbox import Due

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
BURST_AHEAD = timedelta(seconds=1)


def ms(count: int) -> timedelta:
    return timedelta(milliseconds=count)


def due(*at: datetime) -> list[Due]:
    return [Due(each, f"e{number}") for number, each in enumerate(at)]


def test_events_due_within_a_tenth_of_a_second_travel_together_and_are_taken_up_just_before() -> None:
    at = [NOON + ms(after) for after in (1000, 1050, 1099, 1100, 1250)]
    batches = list(grouped(due(*at), NOON, BURST_AHEAD))
    assert [len(batch.ids) for batch in batches] == [3, 1, 1]
    assert [batch.eta for batch in batches] == [at[each] - CLAIM_AHEAD for each in (0, 3, 4)]


def test_a_batch_takes_so_many_and_no_more() -> None:
    events = due(*[NOON + ms(500)] * (2 * EVENTS_A_BATCH + 20))
    sizes = [len(batch.ids) for batch in grouped(events, NOON, BURST_AHEAD)]
    assert sizes == [EVENTS_A_BATCH, EVENTS_A_BATCH, 20]


def test_a_full_batch_is_taken_up_well_ahead_of_its_time() -> None:
    at = NOON + 2 * BURST_AHEAD
    batches = grouped(due(*[at] * (EVENTS_A_BATCH + 1)), NOON, BURST_AHEAD)
    assert [batch.eta for batch in batches] == [at - BURST_AHEAD, at - CLAIM_AHEAD]


def test_what_is_to_be_taken_up_at_once_has_no_eta() -> None:
    full = due(*[NOON + BURST_AHEAD / 2] * EVENTS_A_BATCH)
    assert [batch.eta for batch in grouped(full, NOON, BURST_AHEAD)] == [None]
    assert [batch.eta for batch in grouped(due(NOON + CLAIM_AHEAD), NOON, BURST_AHEAD)] == [None]


def test_what_is_overdue_travels_together_and_has_no_eta() -> None:
    events = due(*[NOON - timedelta(hours=at) for at in (3, 2, 1)], NOON + ms(200))
    batches = list(grouped(events, NOON, BURST_AHEAD))
    assert [(len(batch.ids), batch.eta) for batch in batches] == [
        (3, None),
        (1, NOON + ms(200) - CLAIM_AHEAD),
    ]


def test_no_events_make_no_batch() -> None:
    assert list(grouped([], NOON, BURST_AHEAD)) == []
