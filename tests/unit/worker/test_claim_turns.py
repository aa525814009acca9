"""Which claim comes next where more are to be made than at once."""

from threading import Thread

import pytest

from scheduler_app.worker import claim
from scheduler_app.worker.attempt import Attempt, Job
from scheduler_app.worker.claim import ClaimTurns, KnownOrigins
from scheduler_app.worker.lease import Lease
from tests.builders import event, schedule
from tests.processes import wait_until
from tests.unit.worker.test_waiting import NOON


def test_origins_take_turns_among_the_claims_that_wait() -> None:
    turns, served = ClaimTurns(1), list[str]()

    def take(name: str, origin: str) -> None:
        with turns.taken(lambda: origin):
            served.append(name)

    threads = []
    with turns.taken(lambda: pytest.fail("a free turn asks for no origin")):
        for count, name in enumerate(("a1", "a2", "a3", "b1", "c1"), 1):
            threads.append(Thread(target=take, args=(name, name[0])))
            threads[-1].start()
            wait_until(lambda: sum(map(len, turns._waiting.values())) == count, "it to wait")  # noqa: B023
        assert served == []
    for thread in threads:
        thread.join()
    assert served == ["a1", "b1", "c1", "a2", "a3"]
    assert turns._free == 1


def test_a_turn_is_passed_on_after_a_claim_that_failed() -> None:
    turns = ClaimTurns(1)
    with pytest.raises(ValueError, match="MongoDB"), turns.taken(lambda: ""):
        raise ValueError("MongoDB is away")
    with turns.taken(lambda: pytest.fail("the turn was not passed on")):
        pass


def job(schedule_id: str, origin: str) -> Job:
    made = event(NOON, schedule_id)
    lease = Lease("token", [made.id], asked_at=0, timeout_seconds=10)
    return Job(Attempt(made, schedule(NOON, schedule_id), "token", "w1"), lease, origin)


def test_events_have_an_origin_where_all_of_their_schedules_are_known_to_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = KnownOrigins()
    jobs = [job("s1", "https://a"), job("s2", "https://a"), job("s3", "https://b")]
    known.note(jobs)
    first, second, third = (each.attempt.event.id for each in jobs)
    assert known.of([first, second]) == "https://a"
    assert known.of([third]) == "https://b"
    assert (
        known.of([first, third]) == known.of([first, event(NOON, "unknown").id]) == known.of(["msg_1"]) == ""
    )
    monkeypatch.setattr(claim, "MOST_ORIGINS", 3)
    known.note([job("s4", "https://b")])
    assert (known.of([first]), known.of([event(NOON, "s4").id])) == ("", "https://b")
