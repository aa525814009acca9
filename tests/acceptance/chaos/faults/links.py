"""Links to the servers that fall silent, in one direction or in both."""

import time
from collections.abc import Callable

from tests.acceptance.chaos.cluster import BROKERS, Cluster
from tests.acceptance.chaos.faults.registry import fault
from tests.acceptance.chaos.load import Load

CUT = 20.0


def _linked_to_mongodb(cluster: Cluster) -> None:
    cluster.relaunch_second(MONGO_URI=cluster.link_to_mongod())


def _linked_to_broker(cluster: Cluster) -> None:
    cluster.relaunch_second(BROKER_URL=cluster.link_to_broker())


def _link_faults(server: str, prepare: Callable[[Cluster], None], broker: str | None = None) -> None:
    directions = {
        "": (True, True, "both directions"),
        "-there": (True, False, "the direction of requests"),
        "-back": (False, True, "the direction of answers"),
    }
    for suffix, (there, back, said) in directions.items():

        def strike(cluster: Cluster, load: Load, there: bool = there, back: bool = back) -> None:
            cluster.link.cut(there=there, back=back)
            time.sleep(CUT)
            cluster.link.restore()

        fault(
            f"{server}-cut{suffix}",
            about=f"the link of a beat and a worker to {server} is silent for 20 s, {said}",
            window=26,
            prepare=prepare,
            restore=Cluster.relaunch_second,
            broker=broker,
        )(strike)


_link_faults("mongodb", _linked_to_mongodb)
for each in BROKERS:
    _link_faults(each, _linked_to_broker, each)
