"""The work of an event is done once, until it succeeds."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from scheduler_app.receiver import Answer, Delivery, MemoryKeys, Receiver
from tests.processes import PATIENCE_SECONDS
from tests.unit.receiver.signed import BODY, NOW, SECRET, headers


class Work:
    """Counts its runs; each takes until `may_end`, and fails while `fails`."""

    def __init__(self) -> None:
        self.runs = 0
        self.fails = False
        self.started = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()

    def __call__(self, delivery: Delivery) -> str:
        self.runs += 1
        self.started.set()
        assert self.may_end.wait(PATIENCE_SECONDS)
        if self.fails:
            raise RuntimeError("the disk is full")
        return "done"

    async def later(self, delivery: Delivery) -> str:
        return await asyncio.to_thread(self, delivery)


Handle = Callable[[Receiver, Work], "str | Answer"]


def in_a_thread(receiver: Receiver, work: Work) -> str | Answer:
    return receiver.handle(headers(), BODY, work, now=NOW)


def in_a_loop(receiver: Receiver, work: Work) -> str | Answer:
    return asyncio.run(receiver.handle_async(headers(), BODY, work.later, now=NOW))


both = pytest.mark.parametrize("handle", [in_a_thread, in_a_loop])


def status(result: str | Answer) -> int | str:
    return result.status if isinstance(result, Answer) else result


@both
def test_an_event_that_comes_again_is_not_worked_on_again(handle: Handle) -> None:
    receiver, work = Receiver(SECRET), Work()
    assert [status(handle(receiver, work)) for _ in range(3)] == ["done", 200, 200]
    assert work.runs == 1


@both
def test_of_two_deliveries_at_once_one_runs_and_the_other_is_asked_to_come_again(handle: Handle) -> None:
    receiver, work = Receiver(SECRET), Work()
    work.may_end.clear()
    with ThreadPoolExecutor() as pool:
        first = pool.submit(handle, receiver, work)
        assert work.started.wait(PATIENCE_SECONDS)
        assert status(handle(receiver, work)) == 425
        work.may_end.set()
        assert first.result() == "done"
    assert status(handle(receiver, work)) == 200
    assert work.runs == 1


@both
def test_of_many_deliveries_at_once_one_runs(handle: Handle) -> None:
    receiver, work = Receiver(SECRET), Work()
    with ThreadPoolExecutor(16) as pool:
        found = [status(each) for each in pool.map(lambda _: handle(receiver, work), range(64))]
    assert (found.count("done"), work.runs) == (1, 1)
    assert set(found) <= {"done", 200, 425}


@both
def test_work_that_fails_is_done_by_the_next_delivery(handle: Handle) -> None:
    receiver, work = Receiver(SECRET), Work()
    work.fails = True
    for _ in range(2):
        with pytest.raises(RuntimeError, match="the disk is full"):
            handle(receiver, work)
    work.fails = False
    assert status(handle(receiver, work)) == "done"
    assert work.runs == 3


def test_a_result_that_is_no_success_is_returned_and_the_key_forgotten() -> None:
    receiver, work = Receiver(SECRET), Work()
    for _ in range(2):
        found = receiver.handle(headers(), BODY, work, now=NOW, is_success=lambda result: result != "done")
        assert found == "done"
    assert work.runs == 2


def test_what_is_refused_is_neither_worked_on_nor_remembered() -> None:
    keys, work = MemoryKeys(), Work()
    receiver = Receiver(SECRET, keys=keys)
    assert status(receiver.handle(headers(secrets=()), BODY, work, now=NOW)) == 401
    assert status(receiver.handle(headers(hops=9), BODY, work, now=NOW)) == 508
    assert (work.runs, len(keys)) == (0, 0)


def test_a_caller_who_goes_away_does_not_stop_the_work() -> None:
    receiver, work = Receiver(SECRET), Work()
    work.may_end.clear()

    async def go_away() -> str | Answer:
        first = asyncio.create_task(receiver.handle_async(headers(), BODY, work.later, now=NOW))
        await asyncio.to_thread(work.started.wait, 20)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert status(await receiver.handle_async(headers(), BODY, work.later, now=NOW)) == 425
        work.may_end.set()
        while (found := await receiver.handle_async(headers(), BODY, work.later, now=NOW)) == Answer(
            425, "Another delivery of this event is being worked on."
        ):
            pass
        return found

    assert status(asyncio.run(go_away())) == 200
    assert work.runs == 1


def test_a_server_that_stops_amid_work_forgets_the_key() -> None:
    keys = MemoryKeys()
    receiver = Receiver(SECRET, keys=keys)

    async def endless(delivery: Delivery) -> None:
        await asyncio.Event().wait()

    async def stop() -> None:
        handling: Awaitable[object] = receiver.handle_async(headers(), BODY, endless, now=NOW)
        task = asyncio.ensure_future(handling)
        while not len(keys):
            await asyncio.sleep(0)
        assert not task.done()

    asyncio.run(stop())
    assert len(keys) == 0


class FullDisk(MemoryKeys):
    def finish(self, key: str, token: str) -> None:
        raise OSError("no space left")


def test_work_that_is_done_is_a_success_even_if_that_cannot_be_remembered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    receiver = Receiver(SECRET, keys=FullDisk())
    with caplog.at_level(logging.ERROR):
        assert in_a_thread(receiver, Work()) == "done"
    assert "could not be remembered" in caplog.text


def test_without_room_for_the_key_the_scheduler_is_asked_to_come_again() -> None:
    keys = MemoryKeys(max_keys=1)
    keys.claim("another", "token")
    assert status(in_a_thread(Receiver(SECRET, keys=keys), Work())) == 503


def test_a_function_that_knows_what_is_done_takes_the_place_of_a_store() -> None:
    done: set[str] = set()

    def work(delivery: Delivery) -> str:
        done.add(delivery.key)
        return "done"

    receiver = Receiver(SECRET, keys=done.__contains__)
    found = [receiver.handle(headers(), BODY, work, now=NOW) for _ in range(2)]
    assert [status(each) for each in found] == ["done", 200]
