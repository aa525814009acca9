"""What comes while a write is under way is written by the next one, together."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from scheduler_app.store.bulk_writes import GroupCommit
from tests.processes import PATIENCE_SECONDS, wait_until

CALLERS = 12


class Slow:
    """Work that lasts until it is let go; it keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[list[int]] = []
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)

    def __call__(self, items: Sequence[int]) -> list[int]:
        self.given.append(list(items))
        self.begun.release()
        assert self.may_end.acquire(timeout=PATIENCE_SECONDS)
        if 13 in items:
            raise ValueError(f"unlucky: {items}")
        return [item * 10 for item in items]


@pytest.fixture
def pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(CALLERS)


def test_one_that_comes_alone_is_done_at_once_and_the_next_again(pool: ThreadPoolExecutor) -> None:
    work = Slow()
    work.may_end.release(2)
    together = GroupCommit(work)
    assert (together.do(1), together.do(2)) == (10, 20)
    assert work.given == [[1], [2]]


def test_those_that_come_meanwhile_are_done_together_each_with_its_own_result(
    pool: ThreadPoolExecutor,
) -> None:
    work = Slow()
    together = GroupCommit(work)
    first = pool.submit(together.do, 0)
    assert work.begun.acquire(timeout=PATIENCE_SECONDS)
    others = [pool.submit(together.do, number) for number in range(1, CALLERS)]
    _wait_until_waiting(together, CALLERS - 1)
    work.may_end.release()
    assert first.result() == 0
    work.may_end.release()
    assert [other.result() for other in others] == [number * 10 for number in range(1, CALLERS)]
    assert [sorted(items) for items in work.given] == [[0], list(range(1, CALLERS))]


def test_an_error_reaches_all_that_were_part_of_it_and_nobody_after(pool: ThreadPoolExecutor) -> None:
    work = Slow()
    together = GroupCommit(work)
    first = pool.submit(together.do, 0)
    assert work.begun.acquire(timeout=PATIENCE_SECONDS)
    others = [pool.submit(together.do, number) for number in (13, 14)]
    _wait_until_waiting(together, 2)
    work.may_end.release(3)
    assert first.result() == 0
    for other in others:
        with pytest.raises(ValueError, match="unlucky"):
            other.result()
    assert together.do(5) == 50


def test_many_callers_lose_nothing(pool: ThreadPoolExecutor) -> None:
    done: list[int] = []

    def work(items: Sequence[int]) -> list[int]:
        done.extend(items)
        return [-item for item in items]

    together = GroupCommit(work)
    assert list(pool.map(together.do, range(5_000))) == [-number for number in range(5_000)]
    assert sorted(done) == list(range(5_000))


def _wait_until_waiting(together: GroupCommit[int, int], count: int) -> None:
    wait_until(lambda: len(together._waiting) == count, f"{count} to wait")
