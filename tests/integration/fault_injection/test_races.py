"""Two that meet: one process is stopped before one of its writes while another one does all of its work, and
goes on then. So do all requests with all duties, the duties with these requests, and each duty with itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from tests.drawn import SEED, drawn
from tests.integration.fault_injection.conftest import Bench
from tests.integration.fault_injection.door import Call, Door
from tests.integration.fault_injection.scenarios import (
    KILL_SWITCH,
    LATER,
    asks,
    body,
    deleted_long_ago,
    occurrence,
    ticks,
)
from tests.integration.fault_injection.world import (
    LONG_AGO,
    NO_WORKER,
    SCHEDULE,
    Expected,
    Process,
    Run,
    World,
    at,
    audit,
    occurrences,
)
from tests.processes import wait_until

#: Of the occurrences in the past, the first one is a dead letter, the worker of the second is lost, the
#: message of the third lies in the queue, and the others wait.
DEAD, LOST, QUEUED, WAITING = -44, -34, -24, (-14, -4)
PAST: Final = (LOST, QUEUED, *WAITING)
CANCELLED: Final = (LOST, QUEUED, WAITING[0])


def busy(world: World) -> None:
    """Each duty has something to do, and each request something to change."""
    world.schedule(first=DEAD, count=8)
    world.expand(at(10))
    ended = {"state": "error", "attempt": 1, "archived_at": at(-40)}
    world.set_event(occurrence(DEAD), {"$set": ended, "$unset": {"due_at": ""}})
    lost = {"state": "running", "owner": NO_WORKER, "lease_until": LONG_AGO}
    world.set_event(occurrence(LOST), {"$set": lost})
    for each in WAITING:  # not yet, so that one message alone is sent
        world.set_event(occurrence(each), {"$set": {"due_at": at(100)}})
    world.dispatch()
    for each in WAITING:
        world.set_event(occurrence(each), {"$set": {"due_at": at(each)}})
    deleted_long_ago(world)


def works(process: Process, world: World) -> None:
    """A worker gets the message, which others may have got, too."""
    process.deliver([[occurrence(QUEUED)]])
    process.end_worker()


def recovers_and_works(process: Process, world: World) -> None:
    """Another worker gets what recovery has found."""
    process.tick("recover")
    process.tick("dispatch")
    world.time.put(at(5))
    process.deliver_messages()
    process.end_worker()


def cancels(process: Process, world: World) -> int:
    """Each of the events is cancelled, or it is said that it is too late."""
    for each in CANCELLED:
        status = process.client.post(f"/api/events/{occurrence(each)}/cancel").status_code
        world.answers[occurrence(each)] = status
        if status not in (200, 409):
            return status
    return 200


def as_answered(world: World) -> list[str]:
    rows = {row["_id"]: row["state"] for row in world.database["events"].find()}
    return [
        f"{event_id} is {rows[event_id]}, and its cancellation was answered by {status}"
        for event_id, status in world.answers.items()
        if (status == 200) != (rows[event_id] == "cancelled")
    ]


@dataclass(frozen=True)
class Action:
    """`sent` and `either` are what it leaves to be sent, and what may have been sent before."""

    name: str
    run: Callable[[Process, World], int | None]
    sent: Sequence[int] = (*PAST, *LATER)
    either: Sequence[int] = ()
    threads: frozenset[str] = frozenset({"run"})

    def __str__(self) -> str:
        return self.name


SWITCH_ON = asks("PUT", KILL_SWITCH, json={"all": True})
DUTIES: Final = [
    Action("expand", ticks("expand")),
    Action("dispatch", ticks("dispatch")),
    Action("claim", works),
    Action("record", works, threads=frozenset({"recorder"})),
    Action("recover", ticks("recover")),
]
TAKES_OVER: Final = Action("recovery and another worker", recovers_and_works)
PRUNE: Final = Action("prune", ticks("prune", "prune_calendars"))
REQUESTS: Final = [
    Action("edit", asks("PUT", f"/api/schedules/{SCHEDULE}", json=body(8, every=30)), (*PAST, 8, 38, 68)),
    Action("pause", asks("POST", f"/api/schedules/{SCHEDULE}/pause"), PAST),
    Action("delete", asks("DELETE", f"/api/schedules/{SCHEDULE}"), (), PAST),
    Action("cancel", cancels, (*WAITING[1:], *LATER), CANCELLED),
    Action("redrive", asks("POST", f"/api/events/{occurrence(DEAD)}/redrive"), (DEAD, *PAST, *LATER)),
    Action("kill switch", SWITCH_ON),
    PRUNE,
]
MEETINGS: Final = [
    *((request, duty) for request in REQUESTS for duty in DUTIES),
    *((duty, request) for request in REQUESTS for duty in DUTIES),
    *((DUTIES[-1], duty) for duty in DUTIES[:-1]),
    *((duty, DUTIES[-1]) for duty in DUTIES[:-1]),
    *((each, each) for each in (*DUTIES, PRUNE)),
    *((duty, TAKES_OVER) for duty in DUTIES),
]
STOPPED: Final = [*REQUESTS, *DUTIES]


@dataclass(frozen=True)
class Meeting:
    """The one is stopped before that call while the other does its work."""

    stopped: Action
    before: Call
    other: Action
    leases_over: bool
    """So long that its leases are over: another process takes over what it holds."""

    def __str__(self) -> str:
        late = ", its leases over" if self.leases_over else ""
        return f"{self.stopped} stopped before {self.before}{late}, while {self.other}"


def meetings(bench: Bench, stopped: Action) -> list[Meeting]:
    """All with one that is stopped; its writes are listed by a run of its own."""
    door = Door()
    with bench.world() as world:
        busy(world)
        with bench.tried(world) as process, bench.doors.put(door):
            run = Run(lambda: stopped.run(process, world)).start()
            run.join()
        assert run.succeeded, (stopped, run)
    writes = [call for call in door.calls if call.writes and call.thread in stopped.threads]
    assert writes, f"{stopped} writes nothing: its list says nothing"
    found = []
    for one, other in MEETINGS:
        if one is stopped:
            takes_over = other in (DUTIES[-1], TAKES_OVER) or one is other
            for over in (False, True) if takes_over else (False,):
                found += [Meeting(stopped, write, other, over) for write in writes]
    return found


def met(bench: Bench, meeting: Meeting) -> list[str]:
    """What is wrong after they have met."""
    door = Door(meeting.before)
    with bench.world() as world:
        busy(world)
        with bench.tried(world) as process, bench.doors.put(door):
            run = Run(lambda: meeting.stopped.run(process, world)).start()
            try:
                wait_until(lambda: door.reached.is_set() or run.ended.is_set(), "the stop", pause=0.002)
                if not door.reached.is_set():
                    return ["the call was not made this time"]
                if meeting.leases_over:
                    world.note_end_of_process()
                    world.age_leases()
                world.note_deletion()
                wrong = _meets(world, meeting.other)
                world.note_deletion()
            finally:
                door.go_on()
                run.join()
            if meeting.stopped in REQUESTS and run.status == 503:
                # Whoever waits for what a transaction holds gets it when MongoDB has ended that after ten
                # seconds; the request has changed nothing then, and is made again, as its answer says.
                with bench.tried(world) as process:
                    run = Run(lambda: meeting.stopped.run(process, world)).start()
                    run.join()
            if not run.succeeded:
                wrong.append(f"{meeting.stopped} came to {run}")
        return wrong + _settled(world, meeting)


def _meets(world: World, other: Action) -> list[str]:
    process = world.process()
    try:
        run = Run(lambda: other.run(process, world)).start()
        run.join()
        return [] if run.succeeded else [f"{other} came to {run}"]
    finally:
        process.close()


def _settled(world: World, meeting: Meeting) -> list[str]:
    process = world.process()
    try:
        if world.database["kill_switches"].count_documents({}):
            assert process.client.delete(f"{KILL_SWITCH}?all=true").status_code == 200
        world.settle(process)
    finally:
        process.close()
    twice = [] if meeting.leases_over else [each for each, count in process.taken.items() if count > 1]
    wrong = [f"{each} was queued twice" for each in twice]
    # Duties leave everything to be sent; what a request leaves is less or more than that.
    deciding = meeting.stopped if meeting.stopped in REQUESTS else meeting.other
    expected = Expected(occurrences(*deciding.sent), occurrences(*deciding.either))
    return wrong + audit(world, expected) + as_answered(world)


def _report(wrong: dict[Meeting, list[str]]) -> str:
    return "\n".join(f"{meeting}: " + "; ".join(each) for meeting, each in wrong.items() if each)


@pytest.mark.timeout(600)  # how much there is to do differs from draw to draw
@pytest.mark.parametrize("stopped", STOPPED, ids=lambda each: f"{each}, drawn by {SEED}")
def test_a_drawn_part_of_those_that_meet(bench: Bench, stopped: Action) -> None:
    found = meetings(bench, stopped)
    wrong = {each: met(bench, each) for each in drawn(found, str(stopped))}
    assert not any(wrong.values()), f"with FAULTS_SEED={SEED}:\n{_report(wrong)}"


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("stopped", STOPPED, ids=str)
def test_all_that_meet(bench: Bench, stopped: Action) -> None:
    found = meetings(bench, stopped)
    wrong = {each: met(bench, each) for each in found}
    assert not any(wrong.values()), f"of {len(found)} meetings:\n{_report(wrong)}"
