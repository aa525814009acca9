"""All faults in random order, without a pause for an audit: the load goes on, and is audited at its end."""

import random
import time
from datetime import UTC, datetime

from tests.acceptance.chaos.cluster import Cluster
from tests.acceptance.chaos.faults import Fault, faults_over
from tests.acceptance.chaos.load import Load

#: From one fault's end to the next one's beginning.
PAUSE_SECONDS = (1.0, 6.0)
#: The rest of the window is quiet, for the last fault to be outlived.
LAST_SECONDS = 45
BURSTING = {"worker-killed-in-flight", "all-terminated-in-a-burst", "beats-killed-at-a-tick"}


def mixed(minutes: float, broker: str = "redis") -> Fault:
    """One fault that is all of those which need no circumstances of their own."""
    window = int(minutes * 60)
    ordinary = [
        each
        for each in faults_over(broker).values()
        if each.prepare is None and each.name not in BURSTING | {"none"}
    ]

    def strike(cluster: Cluster, load: Load) -> None:
        draw, over = random.Random(load.name), time.monotonic() + window - LAST_SECONDS
        while time.monotonic() < over:
            fault = draw.choice(ordinary)
            print(f"{datetime.now(UTC):%H:%M:%S} {fault.name}", flush=True)
            fault.strike(cluster, load)
            cluster.mongo.wait_for_all()
            cluster.note_exits()
            time.sleep(draw.uniform(*PAUSE_SECONDS))

    return Fault("mixed", f"all of them in random order, {minutes:g} minutes", strike, window, None, None)
