"""Under load: processes are killed, workers come and go."""

import time

from tests.containers.deployment import until
from tests.containers.engine import StepFailed
from tests.containers.lane import Lane
from tests.containers.traffic import audited, told, traffic

#: From one kill to the next.
PAUSE_SECONDS = 4.0
WINDOW_SECONDS = 60


def kills(lane: Lane) -> list[str]:
    """A worker, a beat, Redis and mongod are killed under the load of `make smoke`, with its audit."""
    deployment = lane.running()
    with traffic(deployment) as target:

        def strike() -> None:
            for service in ("worker", "beat", "redis", "mongo"):
                target.kill(service)
                time.sleep(PAUSE_SECONDS)

        found = audited(target, "kills", WINDOW_SECONDS, strike)
        return [told(found), f"killed: worker, beat, redis, mongod; normal again {_late(found.last_late_at)}"]


def _late(at: float) -> str:
    return f"{max(0.0, time.time() - at):.0f} s before the audit ended" if at else "throughout"


def scale(lane: Lane) -> list[str]:
    """Four workers, then two, with restarts of containers, under load; nobody is killed."""
    deployment = lane.running()
    with traffic(deployment) as target:

        def strike() -> None:
            deployment.compose("up", "--wait", "--no-recreate", "--scale", "worker=4")
            if len(deployment.containers("worker")) != 4:
                raise StepFailed("there are not four workers")
            until(lambda: deployment.processes_alive("worker") >= 4, "four workers in /metrics")
            deployment.compose("restart", "beat", "api")
            deployment.compose("up", "--wait", "--no-recreate", "--scale", "worker=2")

        found = audited(target, "scale", WINDOW_SECONDS, strike)
        if found.permitted:
            raise StepFailed(f"nobody was killed, and yet: {found.permitted[:5]}")
        return [told(found), "two workers, four, two again; beats and the API restarted"]


def down_and_up(lane: Lane) -> list[str]:
    """All of it is stopped and started again under load: what fell due meanwhile is sent."""
    deployment = lane.running()
    with traffic(deployment) as target:

        def strike() -> None:
            deployment.compose("down")
            deployment.compose("up", "--wait")

        found = audited(target, "down", 90, strike)
        if found.permitted:
            raise StepFailed(f"nobody was killed, and yet: {found.permitted[:5]}")
        return [told(found)]


STEPS = (kills, scale, down_and_up)
