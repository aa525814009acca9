"""What the courier is handed."""

from typing import NamedTuple

from scheduler_app.worker.attempt import Attempt
from scheduler_app.worker.lease import Lease


class Job(NamedTuple):
    """An attempt, the lease that it is made under, and the origin that it counts for."""

    attempt: Attempt
    lease: Lease
    origin: str
    isolated: bool = False
    """It may be what kills workers: it starts at once and with no other such, or is given back."""
