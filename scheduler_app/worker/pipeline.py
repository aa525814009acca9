"""The parts of delivery in one process: how they know each other, start and end."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from scheduler_app.actions.kind import Executors
from scheduler_app.clock import monotonic
from scheduler_app.domain.action import CALLBACKS
from scheduler_app.domain.flow_control import Limiter
from scheduler_app.store import Store
from scheduler_app.worker.capacity import Capacity, RecordingBacklog
from scheduler_app.worker.claim import Delivery, Handover
from scheduler_app.worker.courier import Courier
from scheduler_app.worker.flow_control import FlowControl
from scheduler_app.worker.lease import Leases
from scheduler_app.worker.policies import Followers
from scheduler_app.worker.recorder import Recorder
from scheduler_app.worker.rejudging import Rejudging
from scheduler_app.worker.reports import Reports
from scheduler_app.worker.withholding import Withholding

#: How long `stop` waits for each thread, in seconds.
END_SECONDS = 5.0


class Pipeline:
    """Events pass `delivery` (claims them), `handover` (reads their schedules, cancels what was withdrawn),
    `flow_control` (where their destination has limits), `courier` (starts their attempts, once flow control
    has given them a slot where their tenant has a limit) and `recorder` (writes the outcomes)."""

    def __init__(
        self,
        store: Store,
        executors: Executors,
        *,
        now: Callable[[], datetime],
        worker: str,
        horizon_seconds: float,
        max_events: int,
        queues: Collection[str] = (CALLBACKS,),
        limiter: Limiter | None = None,
        judge_failures: Callable[[str, datetime], bool] | None = None,
    ) -> None:
        """`executors` are closed when the courier's thread ends. `max_events`: how many events the worker may
        hold, waiting, in flight or unrecorded. `queues`: whose events it claims. `limiter` counts what
        destinations may be sent; None: those that have limits are not served. `judge_failures` is that of
        `Reports`."""
        self.queues = tuple(sorted(queues))
        self.backlog = RecordingBacklog()
        self.capacity = Capacity(max_events, is_behind=lambda: self.backlog.is_behind(monotonic()))
        self.leases = Leases(store)
        self.reports = Reports(store, now=now, judge_failures=judge_failures)
        self.recorder = Recorder(
            store, self.backlog, self.capacity, now=now, worker=worker, recorded=self.reports.note
        )
        self.withholding = Withholding(store, self.capacity.wait_for_events)
        self.courier = Courier(
            executors,
            self.recorder,
            self.backlog,
            self.capacity,
            now=now,
            withholding=self.withholding,
        )
        self.flow_control = FlowControl(limiter, self.courier, self.recorder, now=now)
        self.followers = Followers(store, now=now)
        self.recorder.report_to(self._let_go)
        self.handover = Handover(
            store,
            self.courier,
            self.flow_control,
            self.recorder,
            self.leases,
            self.followers,
            serves=executors.serves,
            now=now,
            worker=worker,
            queues=self.queues,
        )
        self.courier.report_to(self.flow_control.finished, self._let_go, self.handover.judge_again)
        self.courier.take_slots_by(self.flow_control.put)
        self.flow_control.judge_again_by(self.handover.judge_again)
        self.rejudging = Rejudging(
            store,
            self.recorder,
            places=(self.flow_control, self.courier),
            take_out=self.handover.take_out,
            in_flight=self.courier.event_ids,
            held=lambda: self.capacity.held,
        )
        self.delivery = Delivery(
            store,
            self.capacity,
            self.leases,
            self.handover,
            horizon_seconds=horizon_seconds,
            now=now,
            worker=worker,
            queues=self.queues,
        )
        self.followers.deliver_by(self.delivery.deliver)

    def _let_go(self, event_ids: Sequence[str]) -> None:
        """This worker has nothing to do with these events any more."""
        self.flow_control.dropped(event_ids)
        self.followers.settled(event_ids)

    def start(self) -> None:
        self.withholding.start()
        self.rejudging.start()
        self.flow_control.start()
        for thread in (
            *(self.reports, self.recorder, self.followers),
            *(self.courier, self.handover, self.leases),
        ):
            thread.start()

    def stop_starting(self) -> None:
        """Stops claiming, and gives back events without a started attempt. Attempts in flight continue."""
        self.capacity.stop()
        self.handover.give_back()
        self.flow_control.stop_starting()
        self.courier.stop_starting()
        self.recorder.stop_gathering()

    def interrupt(self) -> None:
        """Gives back the events of attempts in flight, too, and stops waiting for an unreachable MongoDB."""
        self.courier.interrupt()
        self.recorder.hurry()

    def wait_until_empty(self, seconds: float | None = None) -> bool:
        """Waits until every claimed event is written; returns False if some are not after `seconds`."""
        return self.capacity.wait_until_empty(seconds)

    def stop(self) -> None:
        """Ends the threads in the order in which events pass them, so that each still accepts what comes."""
        self.followers.stop()
        self.leases.stop()
        self.withholding.stop()
        self.rejudging.stop()
        self.handover.stop()
        self.flow_control.stop()
        self.courier.stop()
        for thread in (self.handover, self.flow_control, self.courier):
            thread.join(END_SECONDS)
        self.recorder.stop()
        self.recorder.join(END_SECONDS)
        self.reports.stop()
        self.reports.join(END_SECONDS)
