"""Clocks that are off, and orderly ends at the worst moment."""

from tests.acceptance.chaos.cluster import Cluster
from tests.acceptance.chaos.faults.registry import fault
from tests.acceptance.chaos.load import Load
from tests.processes import wait_until

SKEW_SECONDS = "30"


def _clock_fault(name: str, off: str, said: str) -> None:
    def prepare(cluster: Cluster) -> None:
        cluster.relaunch_second("tests.acceptance.skewed", off)

    def strike(cluster: Cluster, load: Load) -> None:
        """It is off for all of the window."""

    about = f"the clock of a beat and a worker is 30 s {said}"
    fault(name, about=about, prepare=prepare, restore=Cluster.relaunch_second)(strike)


_clock_fault("clock-ahead", SKEW_SECONDS, "ahead")
_clock_fault("clock-behind", f"-{SKEW_SECONDS}", "behind")


@fault("all-terminated-in-a-burst")
def all_terminated(cluster: Cluster, load: Load) -> None:
    """SIGTERM of everything during a burst, then start"""
    wait_until(lambda: _running(cluster) >= 50, "the burst")
    names = list(cluster.processes)
    cluster.terminate(*names)
    for name in names:
        cluster.launch(name)
    for name in names:
        cluster.wait_for(name)


def _running(cluster: Cluster) -> int:
    return cluster.database["events"].count_documents({"state": "running"})


@fault("rolling-restart", window=24)
def rolling_restart(cluster: Cluster, load: Load) -> None:
    """every process is ended by SIGTERM and started again, one after the other"""
    for name in list(cluster.processes):
        cluster.terminate(name)
        cluster.restart(name)
