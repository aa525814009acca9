"""Sends jobs to the courier, through flow control where their destination has limits."""

from collections.abc import Sequence

from scheduler_app.domain.destination import Destination, destination_of
from scheduler_app.worker.courier import Courier
from scheduler_app.worker.flow_control import FlowControl
from scheduler_app.worker.handover.batch import Destinations
from scheduler_app.worker.job import Job


class Routing:
    """Threads share it."""

    def __init__(self, courier: Courier, flow_control: FlowControl) -> None:
        self._courier = courier
        self._flow_control = flow_control

    def send(self, jobs: Sequence[Job], destinations: Destinations) -> None:
        """Hands the jobs on; most have no destination."""
        free: list[Job] = []
        limited: list[tuple[Destination, Job]] = []
        for job in jobs:
            named = destination_of(job.attempt.deliverable.action) if destinations else None
            destination = destinations.get(named) if named else None
            if isinstance(destination, Destination) and destination.is_limited:
                limited.append((destination, job))
            else:
                free.append(job)
        if free:
            self._courier.send(free)
        if limited:
            self._flow_control.put(limited)
