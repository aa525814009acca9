"""The door breaks calls as it says; all that is tried here relies on that."""

import pytest
from pymongo.errors import NetworkTimeout

from scheduler_app.domain.action import Lane
from scheduler_app.usecases.duties.dispatch_selection import Batch
from tests import broker_queue
from tests.drawn import drawn
from tests.integration.fault_injection.conftest import Bench
from tests.integration.fault_injection.door import Call, Door, Way
from tests.integration.fault_injection.world import Process, Run, World, at
from tests.processes import wait_until

WRITE = Call("run", "update outbox", 1, writes=True)
PUBLISH = Call("run", "LPUSH of Redis", 1, writes=True)


def writes_twice(process: Process) -> None:
    outbox = process.made.store.mongo.collection("outbox")
    for number in range(2):
        outbox.update_one({"_id": str(number)}, {"$set": {"v": 1}}, upsert=True)


def publishes(process: Process) -> None:
    process.made.publisher.publish([Batch(("e",), at(0), Lane.FRESH)])


def written(world: World) -> list[str]:
    return [row["_id"] for row in world.database["outbox"].find()]


@pytest.mark.parametrize(("way", "left"), [(Way.REFUSED, []), (Way.LOST, ["0"]), (Way.ENDED, [])])
def test_a_call_to_mongodb_breaks_before_or_after_its_effect_or_ends_its_process(
    bench: Bench, way: Way, left: list[str]
) -> None:
    door = Door(WRITE, way)
    with bench.world() as world, bench.tried(world) as process, bench.doors.put(door):
        run = Run(lambda: writes_twice(process)).start()
        wait_until(door.reached.is_set, "the call")
        if way is not Way.ENDED:
            run.join()
        assert (written(world), run.ended.is_set()) == (left, way is not Way.ENDED)
        assert world.process().made.store.mongo.server_time()  # others are not touched
        door.bury()
        run.join()
        assert isinstance(run.result([]).raised, NetworkTimeout)
        assert written(world) == left


@pytest.mark.parametrize(("way", "waiting"), [(Way.REFUSED, 0), (Way.LOST, 1)])
def test_a_message_is_lost_before_or_after_it_reached_redis(bench: Bench, way: Way, waiting: int) -> None:
    door = Door(PUBLISH, way)
    with bench.world() as world, bench.tried(world) as process, bench.doors.put(door):
        run = Run(lambda: publishes(process)).start()
        run.join()
        raised = run.result([]).raised
        assert isinstance(raised, process.made.publisher.unavailable), raised
        with world.redis() as client:
            assert broker_queue.waiting(client) == waiting


def test_a_process_that_is_stopped_before_a_call_goes_on_with_it(bench: Bench) -> None:
    door = Door(WRITE)
    with bench.world() as world, bench.tried(world) as process, bench.doors.put(door):
        run = Run(lambda: writes_twice(process)).start()
        wait_until(door.reached.is_set, "the call")
        assert written(world) == []
        door.go_on()
        run.join()
        assert written(world) == ["0", "1"]
        assert [str(call) for call in door.calls] == [str(WRITE), "update outbox #2 by run"]


def test_a_draw_is_a_tenth_and_the_same_for_one_seed() -> None:
    items = list(range(95))
    found = drawn(items, "a")
    assert (len(found), found == drawn(items, "a"), found == drawn(items, "b")) == (9, True, False)
    assert drawn([1], "a") == [1]
