"""Who may compute, and who waits: the turns of one process."""

from threading import Thread
from time import monotonic

import pytest

from scheduler_app.api.request_shares import (
    ALLOWANCE_SECONDS,
    COMPUTING_SHARES,
    SHARE_OF_CPU,
    THERE_SECONDS,
    WAIT_SECONDS,
    Shares,
    Turns,
)
from tests.processes import wait_until

RUNNING, WAITING, WAITING_EACH = COMPUTING_SHARES.all, COMPUTING_SHARES.waiting, COMPUTING_SHARES.waiting_each


def waiting(turns: Turns, owner: str, count: int) -> list[Thread]:
    """Threads that wait for turns, and give each one back at once."""

    def work() -> None:
        assert turns.take(owner, 60)
        turns.give_back(owner)

    threads = [Thread(target=work) for _ in range(count)]
    before = turns.waiting
    for thread in threads:
        thread.start()
    wait_until(lambda: turns.waiting == before + count, "the threads to wait")
    return threads


def test_an_owner_has_one_turn_at_a_time_and_others_have_theirs() -> None:
    turns = Turns(COMPUTING_SHARES)
    assert turns.take("a", 0)
    assert not turns.take("a", 0.01)
    assert turns.take("b", 0)
    turns.give_back("a")
    assert turns.take("a", 0)


def test_all_owners_together_have_a_bounded_number_of_turns() -> None:
    turns = Turns(COMPUTING_SHARES)
    assert [turns.take(str(number), 0.01) for number in range(RUNNING + 1)] == [True] * RUNNING + [False]


def test_who_waits_comes_next_and_beyond_a_few_of_one_owner_nobody_waits() -> None:
    turns = Turns(COMPUTING_SHARES)
    assert turns.take("a", 0)
    threads = waiting(turns, "a", WAITING_EACH)
    assert not turns.take("a", 60)  # at once
    assert turns.take("b", 0)
    turns.give_back("b")
    turns.give_back("a")
    for thread in threads:
        thread.join()
    assert turns.take("a", 0)


def test_all_owners_together_wait_in_a_bounded_number() -> None:
    turns = Turns(COMPUTING_SHARES)
    owners = [str(number) for number in range(RUNNING)]
    assert all(turns.take(owner, 0) for owner in owners)
    threads = [each for number in range(WAITING) for each in waiting(turns, f"w{number}", 1)]
    assert not turns.take("another", 60)
    for owner in owners:
        turns.give_back(owner)
    for thread in threads:
        thread.join()


def test_owners_without_a_request_are_forgotten() -> None:
    turns = Turns(COMPUTING_SHARES)
    for number in range(1_000):
        assert turns.take(str(number), 0)
        turns.give_back(str(number))
    assert not turns.known


@pytest.mark.parametrize(
    ("owners", "most"), [("a", [8]), ("ab", [8, 4]), ("abc", [8, 4, 2]), ("abcde", [8, 4, 2, 1, 1])]
)
def test_whoever_takes_most_leaves_half_of_the_rest_to_the_next(owners: str, most: list[int]) -> None:
    turns = Turns(Shares(each=16, all=16, waiting_each=0, waiting=0))
    assert [sum(turns.take(owner, 0) for _ in range(20)) for owner in owners] == most


class Elapsed:
    at = 100.0

    def __call__(self) -> float:
        return self.at


def test_beside_others_an_owner_computes_for_its_share_of_the_time() -> None:
    elapsed = Elapsed()
    turns = Turns(COMPUTING_SHARES, share_of_cpu=SHARE_OF_CPU, elapsed=elapsed)

    def computes(seconds: float) -> bool:
        turns.seen("greedy")
        taken = turns.take("greedy", 0)
        if taken:
            turns.give_back("greedy", seconds)
        return taken

    allowed = ALLOWANCE_SECONDS / SHARE_OF_CPU
    turns.seen("b")
    assert computes(allowed)  # at once
    assert computes(0.1)
    assert not computes(0.1)
    assert turns.take("b", 0)  # of itself alone
    turns.give_back("b", 0.001)
    elapsed.at += 0.1 * SHARE_OF_CPU - 0.01
    turns.seen("b")
    assert not computes(0.1)
    elapsed.at += 0.02
    assert computes(60)
    elapsed.at += WAIT_SECONDS - 0.01
    turns.seen("b")
    assert not computes(0)
    elapsed.at += 0.02
    assert computes(0)
    elapsed.at += ALLOWANCE_SECONDS
    assert computes(0)
    assert not turns.spent


def test_alone_an_owner_computes_as_much_as_it_likes() -> None:
    elapsed = Elapsed()
    turns = Turns(COMPUTING_SHARES, share_of_cpu=SHARE_OF_CPU, elapsed=elapsed)
    turns.seen("other")
    elapsed.at += THERE_SECONDS + 0.1
    for _ in range(10):
        turns.seen("greedy")
        assert turns.take("greedy", 0)
        turns.give_back("greedy", 10)


def test_a_pause_ends_without_anybody_s_notice_and_what_waits_has_its_turn() -> None:
    began = list[float]()
    turns = Turns(
        COMPUTING_SHARES,
        share_of_cpu=SHARE_OF_CPU,
        elapsed=lambda: monotonic() - began[0] if began else 0.0,  # it stands still until then
    )
    turns.seen("b")
    turns.seen("a")
    assert turns.take("a", 0)
    turns.give_back("a", (ALLOWANCE_SECONDS + 0.05) / SHARE_OF_CPU)
    assert not turns.take("a", 0)
    began.append(monotonic())
    assert turns.take("a", 60)
