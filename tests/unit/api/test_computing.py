"""Who may compute, and who waits: the turns of one process."""

from threading import Thread

from scheduler_app.api.request_limits import RUNNING, WAITING, WAITING_EACH, Turns
from tests.processes import wait_until


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
    turns = Turns()
    assert turns.take("a", 0)
    assert not turns.take("a", 0.01)
    assert turns.take("b", 0)
    turns.give_back("a")
    assert turns.take("a", 0)


def test_all_owners_together_have_a_bounded_number_of_turns() -> None:
    turns = Turns()
    assert [turns.take(str(number), 0.01) for number in range(RUNNING + 1)] == [True] * RUNNING + [False]


def test_who_waits_comes_next_and_beyond_a_few_of_one_owner_nobody_waits() -> None:
    turns = Turns()
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
    turns = Turns()
    owners = [str(number) for number in range(RUNNING)]
    assert all(turns.take(owner, 0) for owner in owners)
    threads = [each for number in range(WAITING) for each in waiting(turns, f"w{number}", 1)]
    assert not turns.take("another", 60)
    for owner in owners:
        turns.give_back(owner)
    for thread in threads:
        thread.join()


def test_owners_without_a_request_are_forgotten() -> None:
    turns = Turns()
    for number in range(1_000):
        assert turns.take(str(number), 0)
        turns.give_back(str(number))
    assert not turns.known
