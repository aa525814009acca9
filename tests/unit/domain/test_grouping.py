"""Which events travel together."""

from datetime import UTC, datetime, timedelta

from scheduler_app.dispatch import EVENTS_A_BATCH, grouped
from tests.builders import event

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
AHEAD = timedelta(seconds=1)


def ms(count: int) -> timedelta:
    return timedelta(milliseconds=count)


def test_events_due_within_a_tenth_of_a_second_travel_together() -> None:
    due = [NOON + ms(at) for at in (1000, 1050, 1099, 1100, 1250)]
    batches = list(grouped([event(at) for at in due], NOON, AHEAD))
    assert [len(batch.ids) for batch in batches] == [3, 1, 1]
    assert [batch.eta for batch in batches] == [due[0], due[3], due[4]]


def test_a_batch_takes_so_many_and_no_more() -> None:
    events = [event(NOON + ms(500), f"s{number}") for number in range(2 * EVENTS_A_BATCH + 20)]
    assert [len(batch.ids) for batch in grouped(events, NOON, AHEAD)] == [EVENTS_A_BATCH, EVENTS_A_BATCH, 20]


def test_a_full_batch_is_taken_up_ahead_of_its_time_and_no_other_is() -> None:
    due = NOON + 2 * AHEAD
    batches = grouped([event(due, f"s{number}") for number in range(EVENTS_A_BATCH + 1)], NOON, AHEAD)
    assert [batch.eta for batch in batches] == [due - AHEAD, due]


def test_a_full_batch_that_is_due_sooner_than_that_has_no_eta() -> None:
    events = [event(NOON + AHEAD / 2, f"s{number}") for number in range(EVENTS_A_BATCH)]
    assert [batch.eta for batch in grouped(events, NOON, AHEAD)] == [None]


def test_what_is_overdue_travels_together_and_has_no_eta() -> None:
    events = [event(NOON - timedelta(hours=at)) for at in (3, 2, 1)] + [event(NOON + ms(200))]
    batches = list(grouped(events, NOON, AHEAD))
    assert [(len(batch.ids), batch.eta) for batch in batches] == [(3, None), (1, NOON + ms(200))]


def test_no_events_make_no_batch() -> None:
    assert list(grouped([], NOON, AHEAD)) == []
