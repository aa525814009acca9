"""The parts of delivery, put together for one process, and how they begin and end."""

from collections.abc import Callable
from datetime import datetime

from scheduler_app.actions.executors import Executors
from scheduler_app.clock import monotonic
from scheduler_app.store import Store
from scheduler_app.worker.backlog import Backlog
from scheduler_app.worker.capacity import Capacity
from scheduler_app.worker.courier import Courier
from scheduler_app.worker.delivery import Delivery
from scheduler_app.worker.handover import Handover
from scheduler_app.worker.lease import Leases
from scheduler_app.worker.recorder import Recorder
from scheduler_app.worker.reports import Reports

#: What a thread that was told to end is waited for, seconds.
END_SECONDS = 5.0


class Pipeline:
    """Events pass `delivery` (claim), `handover` (read, void), `courier` (send) and `recorder` (write)."""

    def __init__(
        self,
        store: Store,
        executors: Executors,
        *,
        now: Callable[[], datetime],
        worker: str,
        horizon_seconds: float,
        max_events: int,
    ) -> None:
        """`executors` are closed when the courier's thread ends. `max_events`: how many events the worker may
        hold, waiting, in flight or unrecorded."""
        self.backlog = Backlog()
        self.capacity = Capacity(max_events, is_behind=lambda: self.backlog.is_behind(monotonic()))
        self.leases = Leases(store)
        self.reports = Reports(store)
        self.recorder = Recorder(
            store, self.backlog, self.capacity, now=now, worker=worker, recorded=self.reports.note
        )
        self.courier = Courier(
            executors,
            self.recorder,
            self.backlog,
            self.capacity,
            now=now,
        )
        self.handover = Handover(
            store, self.courier, self.recorder, self.leases, serves=executors.serves, now=now, worker=worker
        )
        self.delivery = Delivery(
            store,
            self.capacity,
            self.leases,
            self.handover,
            horizon_seconds=horizon_seconds,
            now=now,
            worker=worker,
        )

    def start(self) -> None:
        for thread in (self.reports, self.recorder, self.courier, self.handover, self.leases):
            thread.start()

    def stop_starting(self) -> None:
        """Nothing is claimed any more, and what has not started is given back; what is in flight goes on."""
        self.capacity.stop()
        self.handover.give_back()
        self.courier.stop_starting()

    def interrupt(self) -> None:
        """Requests in flight are given back too, and an unreachable MongoDB is no longer waited for."""
        self.courier.interrupt()
        self.recorder.hurry()

    def wait_until_empty(self, seconds: float | None = None) -> bool:
        """Waits until all that was claimed is written; False when some is not after so many seconds."""
        return self.capacity.wait_until_empty(seconds)

    def stop(self) -> None:
        """Ends the threads, in the order in which events pass them."""
        self.leases.stop()
        self.handover.stop()
        self.courier.stop()
        for thread in (self.handover, self.courier):
            thread.join(END_SECONDS)
        self.recorder.stop()
        self.recorder.join(END_SECONDS)
        self.reports.stop()
        self.reports.join(END_SECONDS)
