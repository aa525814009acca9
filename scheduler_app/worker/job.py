"""A job: the value that the handover gives to the courier."""

from typing import NamedTuple

from scheduler_app.worker.attempt import Attempt
from scheduler_app.worker.lease import Lease


class Job(NamedTuple):
    """An attempt, the lease that it is made under, and the origin that it counts for."""

    attempt: Attempt
    lease: Lease
    origin: str
    isolated: bool = False
    """Its event may be what killed its last workers: no other such event starts beside it."""
