"""Every place where the core can break is tried: each call to MongoDB and to Redis that a duty or a request
makes fails once, loses its answer once, and is once the call before which its process ends.

The list of calls is made by a run, so that a new call is tried without anybody thinking of it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from structlog.testing import capture_logs

from tests.drawn import SEED, drawn
from tests.integration.fault_injection.conftest import Bench
from tests.integration.fault_injection.door import Call, Door, Way
from tests.integration.fault_injection.scenarios import DUTIES, VERBS, Scenario
from tests.integration.fault_injection.world import Ran, Run, World, audit
from tests.processes import wait_until

SCENARIOS = [*DUTIES, *VERBS]


@dataclass(frozen=True)
class Place:
    """A call that breaks in a way."""

    call: Call
    way: Way
    repeated: bool = True
    """Whether a request that came to no good end is sent again."""

    def __str__(self) -> str:
        return f"{self.call}, {self.way}{'' if self.repeated else ', never asked again'}"


def places(bench: Bench, scenario: Scenario) -> tuple[list[Place], object]:
    """All places of a scenario, by a run of which nothing breaks, and what that run leaves behind."""
    with bench.world() as world:
        scenario.prepare(world)
        door = Door()
        ran = _run(bench, world, scenario, door, until=lambda run: run.ended.is_set())
        assert ran.raised is None, ran.raised
        assert ran.status is None or ran.status < 300, ran.status
        left = world.summary()
    calls = [call for call in door.calls if call.thread in scenario.threads]
    assert calls, f"{scenario} makes no call: its list says nothing"
    ends = (True, False) if scenario.otherwise else (True,)
    return [Place(call, way, again) for call in calls for way in Way for again in ends], left


def tried(bench: Bench, scenario: Scenario, place: Place, unbroken: object) -> list[str]:
    """What is wrong after that call has broken in that way."""
    way = place.way
    with bench.world() as world:
        scenario.prepare(world)
        door = Door(place.call, way)

        def over(run: Run) -> bool:
            return run.ended.is_set() or (way is Way.ENDED and door.reached.is_set())

        wrong: list[str] = []

        def judge(ran: Ran) -> None:
            if not door.reached.is_set():
                # How often a worker's threads ask depends on how quick others are.
                wrong.extend(["the call was not made this time"] if place.call.thread == "run" else [])
            elif way is Way.ENDED:
                world.note_end_of_process()
            elif ran.status is not None and not (ran.status < 300 or ran.status >= 500):
                wrong.append(f"it answers {ran.status} to a fault of a server")
            elif not ran.said_something and (ran.status or 0) < 500 and world.summary() != unbroken:
                wrong.append("it says nothing, and has not done its work")
            wrong.extend(_settled(world, scenario, ran, repeated=place.repeated))

        _run(bench, world, scenario, door, until=over, then=judge)
    return wrong


def _run(
    bench: Bench,
    world: World,
    scenario: Scenario,
    door: Door,
    *,
    until: Callable[[Run], bool],
    then: Callable[[Ran], None] = lambda ran: None,
) -> Ran:
    with bench.tried(world) as process, bench.doors.put(door), capture_logs() as logs:
        run = Run(lambda: scenario.run(process, world)).start()
        try:
            wait_until(lambda: until(run), "the run", pause=0.002)
            ran = run.result(list(logs))
            then(ran)
        finally:
            door.bury()
            process.end_worker()
            run.join()
    return ran


def _settled(world: World, scenario: Scenario, ran: Ran, *, repeated: bool = True) -> list[str]:
    """What is wrong after recovery has done its work."""
    process = world.process()
    try:
        world.age_leases()
        wrong: list[str] = []
        is_done = scenario not in VERBS or (ran.status is not None and ran.status < 300)
        if not is_done and repeated:
            status = scenario.run(process, world)
            is_done = status in scenario.again
            wrong += [] if is_done else [f"repeated, it answers {status}"]
        wrong += scenario.before_settling(world, is_done)
        world.settle(process)
    finally:
        process.close()
    done = audit(world, scenario.expected(world)) + scenario.intended(world)
    if is_done or not done or scenario.otherwise is None:
        return wrong + done
    # A request that was broken off and never sent again is done as a whole, or not at all.
    not_done = audit(world, scenario.otherwise(world))
    return wrong + ([f"neither done ({done}) nor not done ({not_done})"] if not_done else [])


def _report(wrong: dict[Place, list[str]]) -> str:
    return "\n".join(f"{place}: " + "; ".join(each) for place, each in wrong.items() if each)


@pytest.mark.timeout(600)  # how much there is to do differs from draw to draw
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: f"{each}, drawn by {SEED}")
def test_a_drawn_part_of_the_calls_breaks(bench: Bench, scenario: Scenario) -> None:
    found, unbroken = places(bench, scenario)
    wrong = {place: tried(bench, scenario, place, unbroken) for place in drawn(found, str(scenario))}
    assert not any(wrong.values()), f"with FAULTS_SEED={SEED}:\n{_report(wrong)}"


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_each_call_breaks(bench: Bench, scenario: Scenario) -> None:
    found, unbroken = places(bench, scenario)
    wrong = {place: tried(bench, scenario, place, unbroken) for place in found}
    assert not any(wrong.values()), f"of {len(found)} places:\n{_report(wrong)}"
