"""A list of occurrences for a person has a bound in all, and not for each occurrence alone."""

from datetime import UTC, datetime

import pytest

from scheduler_app.domain.recurrence import InvalidRecurrence, Recurrence
from scheduler_app.domain.recurrence.rules import step_budget

START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


def test_a_list_that_takes_too_many_steps_together_names_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Recurrence.parse("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU;BYHOUR=9", created_at=START)
    assert len(rule.occurrences(START, END, 20)) == 20
    monkeypatch.setattr(step_budget, "LISTING_LIMIT", 100)
    with pytest.raises(InvalidRecurrence, match="ask for fewer") as refused:
        rule.occurrences(START, END, 20)
    assert refused.value.field == "limit"
    assert len(rule.between(START, END, 20)) == 20
