from collections.abc import Sequence

import pytest
from pymongo.errors import AutoReconnect, OperationFailure

from scheduler_app.store.bulk_writes import write_isolated


class Work:
    """Rejects each part that holds one of `bad`; those of them that are `guilty` can be condemned."""

    def __init__(self, bad: set[int], guilty: set[int]) -> None:
        self.bad, self.guilty = bad, guilty
        self.calls = 0
        self.condemned: list[int] = []

    def __call__(self, part: Sequence[int]) -> int:
        self.calls += 1
        if self.bad.intersection(part):
            raise OperationFailure("no", 2)
        return len(part)

    def condemn(self, item: int, error: Exception) -> bool:
        if item in self.guilty:
            self.condemned.append(item)
        return item in self.guilty


def test_what_is_accepted_is_done_at_once() -> None:
    work = Work(set(), set())
    assert write_isolated(range(100), work, work.condemn) == ([100], True)
    assert work.calls == 1


def test_one_bad_item_is_found_in_few_steps_and_the_others_are_done() -> None:
    work = Work({617}, {617})
    results, at_once = write_isolated(range(1000), work, work.condemn)
    assert (sum(results), at_once, work.condemned) == (999, False, [617])
    assert work.calls <= 25


def test_every_bad_item_is_found() -> None:
    work = Work({0, 1, 50, 99}, {0, 1, 50, 99})
    assert sum(write_isolated(range(100), work, work.condemn).results) == 96
    assert sorted(work.condemned) == [0, 1, 50, 99]


def test_an_item_with_which_nothing_is_wrong_is_passed_over() -> None:
    work = Work({3}, set())
    assert sum(write_isolated(range(10), work, work.condemn).results) == 9


@pytest.mark.parametrize("count", [1, 10])
def test_a_command_that_is_rejected_for_all_is_no_item_s_fault(count: int) -> None:
    work = Work(set(range(count)), set())
    with pytest.raises(OperationFailure):
        write_isolated(range(count), work, work.condemn)


def test_an_item_that_cannot_even_be_set_aside_is_passed_over() -> None:
    work = Work({3}, {3})

    def condemn(item: int, error: Exception) -> bool:
        raise OperationFailure("failed validation", 121)

    assert sum(write_isolated(range(10), work, condemn).results) == 9
    assert write_isolated([3], work, condemn) == ([], False)


def test_setting_aside_that_is_itself_at_fault_is_no_item_s_fault() -> None:
    work = Work({3}, {3})

    def condemn(item: int, error: Exception) -> bool:
        raise OperationFailure("unknown operator", 9)

    with pytest.raises(OperationFailure, match="unknown operator"):
        write_isolated(range(10), work, condemn)


def test_a_server_that_is_away_is_nobody_s_fault() -> None:
    def away(part: Sequence[int]) -> int:
        raise AutoReconnect("gone")

    with pytest.raises(AutoReconnect):
        write_isolated(range(10), away, Work(set(), set()).condemn)
