"""Publishes batches through one held producer for many messages, and asks for the length of the queue on
behalf of probes and scrapes, which must not wait long.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from kombu.exceptions import LimitExceeded, OperationalError
from kombu.messaging import Producer

from scheduler_app.broker.app import Application
from scheduler_app.broker.malformed import MESSAGE_VERSION
from scheduler_app.broker.task import DELIVER, delivery_queue
from scheduler_app.broker_faults import broker_faults
from scheduler_app.clock import monotonic
from scheduler_app.domain.action import CALLBACKS, QueueLengths
from scheduler_app.telemetry import metrics
from scheduler_app.usecases.duties.dispatch_selection import Batch

#: For connecting, and for each answer. A publisher waits longer.
PATIENCE_SECONDS = 1.0


class QueueProbe:
    """One thread at most asks, over a connection of its own; callers that come meanwhile share its answer."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._asked: Future[int] | None = None
        self._connection: Any = None
        self._publishing: Any = None
        """Another connection: a broker with an alarm reads nothing more from one that publishes."""

    def ask(self) -> Callable[[float], int]:
        """Asks, and returns what waits for the answer, some seconds at most.

        It raises what the transport raised, or TimeoutError.
        """
        asked = self._asked_now()
        answers = metrics.dependency_up.labels("broker")

        def wait(seconds: float) -> int:
            try:
                length = asked.result(max(0.0, seconds))
            except Exception:
                answers.set(0)
                raise
            answers.set(1)
            return length

        return wait

    def _asked_now(self) -> "Future[int]":
        with self._lock:
            if self._asked is None or self._asked.done():
                self._asked = Future()
                threading.Thread(target=self._answer, args=(self._asked,), name="queue", daemon=True).start()
            return self._asked

    def _answer(self, asked: "Future[int]") -> None:
        try:
            if self._connection is None:
                self._connection = impatient_connection(self._app, PATIENCE_SECONDS)
                self._publishing = impatient_connection(self._app, PATIENCE_SECONDS)
            broker = self._app.broker
            length = broker.queue_length(self._connection.default_channel)
            broker.check_publishing(self._publishing)
            asked.set_result(length)
        except Exception as error:  # the asker's; each transport has errors of its own
            broken, self._connection, self._publishing = (self._connection, self._publishing), None, None
            asked.set_exception(error)
            for connection in broken:
                with suppress(Exception):  # of a connection that is broken already
                    connection.release()


class RecoveryProbe:
    """Knows whether a broker that failed answers again, without letting anybody wait. Thread-safe."""

    def __init__(self, probe: QueueProbe) -> None:
        self._probe = probe
        self._lock = threading.Lock()
        self._is_away = False
        self._asked: tuple[Callable[[float], int], float] | None = None
        """What waits for the answer, and when it was asked."""

    def failed(self) -> None:
        """Notes that the broker did not answer."""
        self._is_away = True

    def is_away(self) -> bool:
        """Whether it has not answered since it failed; asks it again, in the background."""
        if not self._is_away:
            return False
        with self._lock:
            if self._asked is not None:
                wait, asked_at = self._asked
                try:
                    wait(0.0)
                except Exception:  # each transport has errors of its own, and some are TimeoutErrors
                    if monotonic() - asked_at < PATIENCE_SECONDS:
                        return True
                else:
                    self._is_away, self._asked = False, None
                    return False
            self._asked = self._probe.ask(), monotonic()
        return True


def impatient_connection(app: Application, seconds: float) -> Any:
    """Returns a connection to the app's broker whose every step fails after that many seconds."""
    # Celery adds what else the app's settings say of its transport.
    options = app.broker.impatient_options(seconds)
    return app.connection_for_read(connect_timeout=seconds, transport_options=options)


#: The longest wait for one of the connections that all threads publish over.
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
    def _connection(self) -> Iterator[Any]:
        """Of the pool of connections: kombu's pool of producers hands out more of them than there are
        connections, and then waits for one without end (its ProducerPool.prepare, of kombu 5.7)."""
        pool = self._app.pool
        try:
            connection = pool.acquire(block=True, timeout=POOL_SECONDS)
        except LimitExceeded:
            raise OperationalError(
                f"all {pool.limit} connections to the broker have been in use for {POOL_SECONDS:g} s"
            ) from None
        with connection:
            yield connection

    @contextmanager
    def _producer(self, *, publishes: bool = False) -> Iterator[Any]:
        """Over one of the pool's connections; whether the broker answered, and takes messages, is counted."""
        answers = metrics.dependency_up.labels("broker")
        try:
            with self._connection() as connection:
                yield Producer(connection)
        except self.unavailable:
            answers.set(0)
            self._refuses |= publishes
            self._recovery.failed()
            raise
        self._refuses &= not publishes
        if not self._refuses:
            answers.set(1)
