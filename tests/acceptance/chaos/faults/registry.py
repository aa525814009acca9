"""A fault: what is broken, and healed again, some seconds into the window of a load.

Every `time.sleep` in this package is the fault's own length (an outage of so many seconds, a lease to be
outlasted); none is for something to become true.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tests.acceptance.chaos.cluster import Cluster
from tests.acceptance.chaos.load import Load

Strike = Callable[[Cluster, Load], None]
Preparation = Callable[[Cluster], None]


@dataclass(frozen=True)
class Fault:
    """`prepare` runs before the load is there, `strike` while it runs, `restore` after the audit. `broker` is
    the one that it strikes, where it knows that kind alone."""

    name: str
    about: str
    strike: Strike
    window: int
    prepare: Preparation | None
    restore: Preparation | None
    broker: str | None = None


FAULTS: dict[str, Fault] = {}


def fault(
    name: str,
    *,
    about: str | None = None,
    window: int = 16,
    prepare: Preparation | None = None,
    restore: Preparation | None = None,
    broker: str | None = None,
) -> Callable[[Strike], Strike]:
    """Registers a fault, in the order of the source; the docstring says what it is about."""

    def register(strike: Strike) -> Strike:
        said = (about or strike.__doc__ or "").strip().rstrip(".")
        FAULTS[name] = Fault(name, said, strike, window, prepare, restore, broker)
        return strike

    return register


def faults_over(broker: str) -> dict[str, Fault]:
    """Those that a cluster with this broker can be struck by."""
    return {name: fault for name, fault in FAULTS.items() if fault.broker in (None, broker)}
