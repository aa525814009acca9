"""Asks for the length of the queue on behalf of probes and scrapes, which must not wait long."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from scheduler_app.broker.app import Application
from scheduler_app.clock import monotonic
from scheduler_app.telemetry import metrics

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
        self._asked: Callable[[float], int] | None = None
        self._asked_at = 0.0

    def failed(self) -> None:
        """Notes that the broker did not answer."""
        self._is_away = True

    def is_away(self) -> bool:
        """Whether it has not answered since it failed; asks it again, in the background."""
        if not self._is_away:
            return False
        with self._lock:
            if self._asked is not None:
                try:
                    self._asked(0.0)
                except Exception:  # each transport has errors of its own, and some are TimeoutErrors
                    if monotonic() - self._asked_at < PATIENCE_SECONDS:
                        return True
                else:
                    self._is_away, self._asked = False, None
                    return False
            self._asked, self._asked_at = self._probe.ask(), monotonic()
        return True


def impatient_connection(app: Application, seconds: float) -> Any:
    """Returns a connection to the app's broker whose every step fails after that many seconds."""
    options = app.conf.broker_transport_options | app.broker.impatient_options(seconds)
    return app.connection_for_read(connect_timeout=seconds, transport_options=options)
