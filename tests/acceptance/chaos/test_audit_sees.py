"""The audit can see what it claims to see: with a mechanism switched off, a run of the suite fails."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.acceptance.chaos import suite
from tests.acceptance.chaos.cluster import Cluster
from tests.acceptance.chaos.faults import FAULTS
from tests.acceptance.chaos.without import MECHANISMS

#: The fault that each mechanism is there for, and what the audit calls its absence.
SEEN = {
    "unique-id": ("beats-killed-at-a-tick", "repeated"),
    "claim": ("messages-doubled", "repeated"),
    "token-fence": ("worker-stopped", "histories"),
    "message-recovery": ("redis-flushed", "stuck"),
    "worker-recovery": ("worker-killed-in-flight", "stuck"),
    "cut": ("none", "not_owed"),
    "restore-override": ("redis-killed", "exited"),
    "overlap": ("none", "overlaps"),
    "kill-switch": ("kill-switch", "withheld"),
    "blackout": ("blackout", "withheld"),
}
#: What nobody repairs is not waited for as long as what somebody does.
QUIET_SECONDS = 30
#: A fault may strike where nothing was in its way: no message in a worker's hands when Redis dies.
LOADS = 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """The servers; each test starts the product's processes anew."""
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder, ExitStack() as stack:
        made = Cluster(Path(folder))
        made.start_servers(stack)
        yield made


def test_every_mechanism_has_a_fault_that_needs_it() -> None:
    assert SEEN.keys() == MECHANISMS.keys()


@pytest.mark.chaos
@pytest.mark.timeout(400)
@pytest.mark.parametrize("mechanism", SEEN)
def test_without_it_the_promise_is_broken(cluster: Cluster, mechanism: str) -> None:
    fault, kind = SEEN[mechanism]
    cluster.run_anew("tests.acceptance.chaos.without", mechanism)
    found = []
    for seed in range(1, LOADS + 1):
        found.append(suite.run(cluster, FAULTS[fault], seed, quiet_seconds=QUIET_SECONDS).findings)
        if getattr(found[-1], kind):
            return
    pytest.fail(f"{mechanism} was missed by nobody: {found}")
