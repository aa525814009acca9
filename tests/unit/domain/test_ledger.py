"""A ledger's chain: what a changed, a missing and a moved line show."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.ledger import MOST_NAMED, Account, LedgerLine, OutcomeCounts, by_hour, verify

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def chain(length: int) -> list[LedgerLine]:
    made: list[LedgerLine] = []
    for number in range(1, length + 1):
        hour = NOON + timedelta(hours=number)
        account = Account(OutcomeCounts(owed=number, completed=number))
        given = {"previous": made[-1].hash} if made else {}
        line = LedgerLine("default", number, hour, 1, hour + timedelta(minutes=70), account, **given)
        made.append(line.sealed())
    return made


def test_an_untouched_ledger_is_verified_to_its_end() -> None:
    found = verify(chain(5))
    assert (found.lines, found.wrong) == (5, None)


@pytest.mark.parametrize(
    "change",
    [
        {"account": Account(OutcomeCounts(owed=3, completed=2))},
        {"account": Account(OutcomeCounts(owed=3, completed=3), missing=("s1-1-20260302T120000Z",))},
        {"hour": NOON},
        {"turn": 2},
        {"written_at": NOON},
        {"tenant": "acme"},
    ],
)
def test_a_changed_line_is_found(change: dict[str, Any]) -> None:
    lines = chain(5)
    lines[2] = replace(lines[2], **change)
    found = verify(lines)
    assert found.lines == 2
    assert found.wrong is not None
    assert found.wrong.startswith("line 3 ")


def test_a_changed_line_with_a_fresh_hash_is_found_by_the_next_one() -> None:
    lines = chain(5)
    lines[2] = replace(lines[2], account=Account(OutcomeCounts())).sealed()
    assert verify(lines).wrong == "line 4 does not follow the line before it"


def test_a_line_that_was_taken_out_is_found() -> None:
    lines = chain(5)
    del lines[2]
    assert verify(lines).wrong == "line 3 is missing: 4 follows 2"


def test_a_ledger_whose_oldest_lines_were_removed_goes_on_after_a_known_one() -> None:
    lines = chain(5)
    assert verify(lines[3:], first=lines[2]).wrong is None
    assert verify(lines[3:]).wrong is None
    assert verify(lines[3:], first=lines[1]).wrong == "line 3 is missing: 4 follows 2"


def test_the_last_line_of_an_hour_is_true() -> None:
    first, second = chain(2)
    later = replace(second, hour=first.hour, turn=2).sealed()
    assert by_hour([first, later]) == [later]


def test_a_line_names_a_bounded_number_of_ids() -> None:
    many = tuple(f"s-1-{number}" for number in range(80))
    account = Account(missing=many) + Account(missing=many)
    assert len(account.missing) == MOST_NAMED
