"""Figures of attempts: steps, quantiles, parts."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.figures import HOUR, MINUTE, FigurePart, Measured, begin_of_part, regrouped

AT = datetime(2026, 3, 3, 10, tzinfo=UTC)


def measured(*values: float) -> Measured:
    made = Measured()
    for value in values:
        made.add(value)
    return made


@pytest.mark.parametrize(
    ("values", "share", "quantile"),
    [
        ((), 0.5, None),
        ((3.0,), 0.5, 3.0),
        ((3.0, 4.0), 0.99, 4.0),
        ((*[4.0] * 98, 90.0, 90.0), 0.5, 5.0),
        ((*[4.0] * 98, 90.0, 90.0), 0.99, 90.0),
        ((*[4.0] * 99, 7e7), 0.99, 5.0),
        ((7e7,), 0.99, 7e7),
    ],
)
def test_a_quantile_is_the_upper_bound_of_its_step_and_never_more_than_the_greatest(
    values: tuple[float, ...], share: float, quantile: float | None
) -> None:
    assert measured(*values).quantile(share) == quantile


def test_values_above_a_bound_are_those_of_later_steps() -> None:
    found = measured(0.5, 999.0, 1_000.0, 1_000.1, 7e7)
    assert (found.above(1_000), found.above(500), found.above(1)) == (2, 4, 4)


def test_what_two_processes_measured_adds_up() -> None:
    one, other = measured(1.0, 30.0), measured(700.0)
    one.merge(other)
    assert (one.count, one.total, one.most) == (3, 731.0, 700.0)
    assert one == measured(1.0, 30.0, 700.0)


def test_parts_of_minutes_become_parts_of_another_width() -> None:
    found = []
    for minutes in (0, 1, 5, 29, 30):
        part = FigurePart(AT + minutes * MINUTE)
        part.add("completed", -3.0, 12.0)
        found.append(part)
    parts = regrouped(found, AT, AT + 30 * MINUTE, timedelta(minutes=10))
    assert [part.outcomes["completed"] for part in parts] == [3, 0, 1]
    assert [part.at for part in parts] == [AT, AT + 10 * MINUTE, AT + 20 * MINUTE]
    # Clocks of two machines differ: what began before it was due was in time.
    assert (parts[0].lag.total, parts[0].lag.count, parts[0].duration.total) == (0.0, 3, 36.0)


def test_parts_begin_at_multiples_of_their_width() -> None:
    assert begin_of_part(AT + 61 * MINUTE, HOUR) == AT + HOUR
    assert begin_of_part(AT + timedelta(seconds=59.999), MINUTE) == AT
