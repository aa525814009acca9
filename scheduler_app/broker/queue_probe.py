"""Asks for the length of the queue on behalf of probes and scrapes, which must not wait long."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from scheduler_app.broker.app import Application
from scheduler_app.telemetry import metrics

#: For connecting, and for each answer. A publisher waits longer.
PATIENCE_SECONDS = 1.0


class QueueProbe:
    """One thread at most asks, over a connection of its own; whoever comes meanwhile shares its answer."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._asked: Future[int] | None = None
        self._connection: Any = None

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
            asked.set_result(self._app.broker.queue_length(self._connection.default_channel))
        except Exception as error:  # the asker's; each transport has errors of its own
            broken, self._connection = self._connection, None
            asked.set_exception(error)
            with suppress(Exception):  # of a connection that is broken already
                broken.release()


def impatient_connection(app: Application, seconds: float) -> Any:
    """Returns a connection to the app's broker whose every step fails after so many seconds."""
    options = app.conf.broker_transport_options | app.broker.impatient_options(seconds)
    return app.connection_for_read(connect_timeout=seconds, transport_options=options)
