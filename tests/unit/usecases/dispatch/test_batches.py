"""Which events travel together."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.action import FRESH_FOR, Lane
from scheduler_app.domain.states import SUSPECT_AFTER
from scheduler_app.store.events.outbox import DueEvent
from scheduler_app.usecases.duties.dispatch_selection import (
    CLAIM_AHEAD,
    EVENTS_A_BATCH,
    EVENTS_OF_A_BUSY_ORIGIN,
    grouped,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
BURST_AHEAD = timedelta(seconds=1)


def ms(count: int) -> timedelta:
    return timedelta(milliseconds=count)


def due(*at: datetime) -> list[DueEvent]:
    return [DueEvent(each, f"e{number}") for number, each in enumerate(at)]


def test_few_events_travel_together_for_half_a_second_and_are_taken_up_just_before() -> None:
    at = [NOON + ms(after) for after in (1000, 1050, 1499, 1500, 2000)]
    batches = list(grouped(due(*at), NOON, BURST_AHEAD))
    assert [len(batch.ids) for batch in batches] == [3, 1, 1]
    assert [batch.eta for batch in batches] == [at[each] - CLAIM_AHEAD for each in (0, 3, 4)]


@pytest.mark.parametrize(("each_ms", "sizes"), [(50, [10, 10]), (8, [49, 49, 2]), (1, [100])])
def test_events_travel_together_for_a_tenth_of_a_second_where_that_makes_enough_of_them(
    each_ms: int, sizes: list[int]
) -> None:
    """With 49 their batch ends after that; a 50th of one origin would make it a busy one."""
    at = [NOON + ms(1000 + each_ms * number) for number in range(sum(sizes))]
    assert [len(batch.ids) for batch in grouped(due(*at), NOON, BURST_AHEAD)] == sizes


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
    events = due(*[NOON - timedelta(hours=at) for at in (3, 2, 1)])
    (batch,) = grouped(events, NOON, BURST_AHEAD)
    assert (len(batch.ids), batch.eta, batch.lane) == (3, None, Lane.LATE)


def test_what_is_late_does_not_travel_with_what_falls_due_now_and_comes_after_it() -> None:
    late, fresh, soon = NOON - FRESH_FOR, NOON - FRESH_FOR + ms(1), NOON + ms(50)
    batches = grouped(due(late, fresh, soon), NOON, BURST_AHEAD)
    assert [(batch.ids, batch.lane) for batch in batches] == [
        (("e1", "e2"), Lane.FRESH),
        (("e0",), Lane.LATE),
    ]


def test_what_a_person_asked_for_this_moment_is_urgent() -> None:
    (batch,) = grouped(due(NOON), NOON, BURST_AHEAD, urgent=True)
    assert batch.lane is Lane.URGENT


def test_a_busy_origin_has_batches_of_its_own_behind_those_that_others_share() -> None:
    many = EVENTS_OF_A_BUSY_ORIGIN
    busy = [DueEvent(NOON + ms(500), f"busy{number:03}", "http://busy:80") for number in range(many)]
    few = [DueEvent(NOON + ms(550), f"few{number}", f"http://few{number}:80") for number in range(3)]
    next_span = [DueEvent(NOON + ms(600), "next", "http://busy:80")]
    batches = grouped([*busy, *few, *next_span], NOON, BURST_AHEAD)
    assert [batch.ids for batch in batches] == [
        ("few0", "few1", "few2"),
        ("next",),
        tuple(event.id for event in busy),
    ]


def test_what_returns_travels_apart_from_first_attempts_however_they_alternate() -> None:
    events = [
        event._replace(returns=bool(place % 2)) for place, event in enumerate(due(*[NOON + ms(500)] * 6))
    ]
    first, returning = grouped(events, NOON, BURST_AHEAD)
    assert (first.ids, returning.ids) == (("e0", "e2", "e4"), ("e1", "e3", "e5"))


def test_origins_of_a_few_events_share_a_batch() -> None:
    events = [DueEvent(NOON + ms(500), f"e{number}", f"http://o{number % 2}:80") for number in range(90)]
    (batch,) = grouped(events, NOON, BURST_AHEAD)
    assert len(batch.ids) == 90


def test_an_event_that_lost_several_leases_travels_alone_and_last() -> None:
    at = NOON + ms(500)
    suspects = [DueEvent(at, f"s{number}", lost_leases=SUSPECT_AFTER) for number in range(2)]
    others = [DueEvent(at, "once", lost_leases=SUSPECT_AFTER - 1), DueEvent(at, "never")]
    batches = grouped([*suspects, *others], NOON, BURST_AHEAD)
    assert [(batch.ids, batch.lane) for batch in batches] == [
        (("once", "never"), Lane.FRESH),
        (("s0",), Lane.LATE),
        (("s1",), Lane.LATE),
    ]
    assert {batch.eta for batch in batches} == {at - CLAIM_AHEAD}


def test_no_events_make_no_batch() -> None:
    assert list(grouped([], NOON, BURST_AHEAD)) == []


def test_a_batch_goes_by_the_lane_of_its_events_and_says_which_queue_it_is_for() -> None:
    late = NOON - FRESH_FOR
    events = due(late, late + ms(1), NOON)
    batches = grouped(events, NOON, BURST_AHEAD, queue="slow")
    assert [(batch.ids, batch.lane, batch.eta, batch.queue) for batch in batches] == [
        (("e1", "e2"), Lane.FRESH, None, "slow"),
        (("e0",), Lane.LATE, None, "slow"),
    ]
    (urgent,) = grouped(due(NOON, NOON), NOON, BURST_AHEAD, urgent=True)
    assert (urgent.lane, urgent.ids) == (Lane.URGENT, ("e0", "e1"))
    assert grouped([], NOON, BURST_AHEAD) == []


def test_an_eta_is_given_only_where_it_lies_ahead() -> None:
    at, after = NOON + CLAIM_AHEAD, NOON + CLAIM_AHEAD + ms(1)
    assert [batch.eta for batch in grouped(due(at), NOON, BURST_AHEAD)] == [None]
    assert [batch.eta for batch in grouped(due(after), NOON, BURST_AHEAD)] == [NOON + ms(1)]


def test_an_origin_is_busy_from_so_many_events_in_a_span_on() -> None:
    def of(origin: str, count: int) -> list[DueEvent]:
        return [DueEvent(NOON, f"{origin}{number:03}", origin) for number in range(count)]

    few = of("a", EVENTS_OF_A_BUSY_ORIGIN - 1)
    assert len(grouped([*few, *of("b", 3)], NOON, BURST_AHEAD)) == 1
    busy = of("a", EVENTS_OF_A_BUSY_ORIGIN)
    shared, own = grouped(sorted([*busy, *of("b", 3)]), NOON, BURST_AHEAD)
    assert [each[0] for each in shared.ids] == ["b"] * 3
    assert len(own.ids) == EVENTS_OF_A_BUSY_ORIGIN
    # Also where nothing else is due within its span.
    later = DueEvent(NOON + ms(150), "c", "c")
    shared, own = grouped([*busy, later], NOON, BURST_AHEAD)
    assert (shared.ids, len(own.ids)) == (("c",), EVENTS_OF_A_BUSY_ORIGIN)
