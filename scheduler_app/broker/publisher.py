"""Publishes batches through one held producer for many messages."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from scheduler_app.broker.app import Application
from scheduler_app.broker.malformed import MESSAGE_VERSION
from scheduler_app.broker.queue_probe import QueueProbe, RecoveryProbe
from scheduler_app.broker.queues import DELIVER, delivery_queue
from scheduler_app.broker_faults import broker_faults
from scheduler_app.domain.lane import QueueLengths
from scheduler_app.domain.queues import CALLBACKS
from scheduler_app.telemetry import metrics
from scheduler_app.usecases.dispatch import Batch

POOL_SECONDS = 5.0


class CeleryPublisher:
    """`dispatch.Publisher` over `apply_async(eta=…)`. Thread-safe."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._broker = app.broker
        self._task = app.tasks[DELIVER]
        self.unavailable = broker_faults(app.connection_for_write())
        self._probe = QueueProbe(app)
        self.title, self.remedy = app.broker.title, app.broker.remedy
        self._refuses = False
        """Whether the last message was not taken: that a question is answered says nothing then."""
        self._recovery = RecoveryProbe(self._probe)

    def publish(self, batches: Sequence[Batch]) -> None:
        with self._producer(publishes=True) as producer:
            for batch in batches:
                self._task.apply_async(
                    kwargs={"v": MESSAGE_VERSION, "ids": list(batch.ids)},
                    eta=batch.eta,
                    priority=self._broker.priorities[batch.lane],
                    queue=None if batch.queue == CALLBACKS else delivery_queue(batch.queue),
                    producer=producer,
                    retry=False,
                )

    def queue_length(self) -> int:
        """Messages that no worker has fetched yet."""
        with self._producer() as producer:
            return self._broker.queue_length(producer.channel)

    def ask_queue_length(self) -> Callable[[float], int]:
        """The same for callers that do not wait long for an answer: see QueueProbe."""
        return self._probe.ask()

    def queue_lengths(self, queue: str = CALLBACKS) -> QueueLengths:
        """The same by lane, of any queue."""
        with self._producer() as producer:
            return self._broker.queue_lengths(producer.channel, queue)

    def is_away(self) -> bool:
        """Whether the broker did not answer when it was last asked for something. It waits for nothing: while
        the broker is away it is asked again in the background, once for all callers."""
        return self._recovery.is_away()

    @contextmanager
    def _producer(self, *, publishes: bool = False) -> Iterator[Any]:
        """One of the pool's; whether the broker answered, and takes messages, is counted."""
        answers = metrics.dependency_up.labels("broker")
        try:
            with self._app.producer_pool.acquire(block=True, timeout=POOL_SECONDS) as producer:
                yield producer
        except self.unavailable:
            answers.set(0)
            self._refuses |= publishes
            self._recovery.failed()
            raise
        self._refuses &= not publishes
        if not self._refuses:
            answers.set(1)
