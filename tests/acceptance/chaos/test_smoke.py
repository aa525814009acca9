"""`make smoke`: each part dies once while hundreds of schedules fire and are edited, and all is audited."""

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from rich.console import Console

from tests.acceptance.chaos import suite
from tests.acceptance.chaos.cluster import Cluster
from tests.acceptance.chaos.faults import FAULTS, Fault
from tests.acceptance.chaos.load import Load
from tests.acceptance.chaos.report import show_breaks, table

STRUCK = ("worker-killed", "beat-killed", "redis-killed", "primary-steps-down")
#: From one fault's end to the next one's beginning.
PAUSE_SECONDS = 3.0
#: All four, and some seconds after the last.
WINDOW_SECONDS = 45


def _strike(cluster: Cluster, load: Load) -> None:
    for name in STRUCK:
        FAULTS[name].strike(cluster, load)
        time.sleep(PAUSE_SECONDS)


SMOKE = Fault("smoke", ", ".join(STRUCK), _strike, WINDOW_SECONDS, None, None)


@pytest.mark.smoke
@pytest.mark.timeout(400)
def test_nothing_is_lost_repeated_or_stuck_though_each_part_dies_once_under_load() -> None:
    with tempfile.TemporaryDirectory(prefix="smoke-") as folder, ExitStack() as stack:
        cluster = Cluster(Path(folder))
        cluster.start_servers(stack)
        cluster.start_processes()
        row = suite.run(cluster, SMOKE, 1)
        console = Console(width=180)
        console.print(table([row]))
        show_breaks(console, row)
        assert not row.findings.broken, cluster.stack.logs()
    assert row.findings.occurrences > 1_000, "a load that asks for little shows little"
