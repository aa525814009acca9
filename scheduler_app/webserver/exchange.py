"""One request and its answer, in a thread that never waits for the client."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from gunicorn.http import wsgi
from gunicorn.http.message import Request

from scheduler_app.telemetry import get_logger
from scheduler_app.webserver.connection import Connection
from scheduler_app.webserver.limits import PENDING_ANSWER_BYTES
from scheduler_app.webserver.problems import RefusedRequest

log = get_logger(__name__)


class Exchange:
    """Calls the application, and takes its answer piece by piece, no faster than the client reads it."""

    def __init__(self, worker: Any, connection: Connection, request: Request) -> None:
        """`worker` is the gunicorn worker: its settings, hooks, log and application."""
        self._worker = worker
        self._connection = connection
        self._request = request
        self._response: Any = None
        self._environ: dict[str, Any] = {}
        self._answer: Iterable[bytes] | None = None
        self._pieces: Iterator[bytes] | None = None
        self._began = datetime.now(UTC)
        self.is_over = False

    def advance(self) -> None:
        """Works until the answer is complete, or enough of it waits to be sent; then it is called again."""
        try:
            if self._pieces is None:
                self._begin()
            self._take_pieces()
        except Exception as error:
            self._fail(error)
        try:
            self._connection.flush()
        except OSError:
            # The client is gone; the event loop closes the connection.
            self._connection.closes = True
            self.abandon()

    def abandon(self) -> None:
        """Ends the application's answer, complete or not. A second call does nothing."""
        self.is_over = True
        answer, self._answer = self._answer, None
        if answer is not None and hasattr(answer, "close"):
            answer.close()
        if self._response is not None:
            response, self._response = self._response, None
            self._worker.log.access(response, self._request, self._environ, datetime.now(UTC) - self._began)
            self._worker.cfg.post_request(self._worker, self._request, self._environ, response)

    def _begin(self) -> None:
        worker, request, connection = self._worker, self._request, self._connection
        worker.cfg.pre_request(worker, request)
        self._response, self._environ = wsgi.create(
            request, connection, connection.peer, connection.server, worker.cfg
        )
        self._environ["wsgi.multithread"] = True
        # A route that wrote to the socket itself would wait for the client.
        del self._environ["gunicorn.socket"]
        if worker.is_last_request() or not worker.cfg.keepalive:
            self._response.force_close()
        self._answer = worker.wsgi(self._environ, self._response.start_response)
        self._pieces = iter(self._answer)

    def _take_pieces(self) -> None:
        assert self._pieces is not None  # noqa: S101
        for piece in self._pieces:
            self._response.write(piece)
            if self._connection.pending >= PENDING_ANSWER_BYTES and not self._drained():
                return
        self._response.close()
        self._connection.closes = self._response.should_close()
        self.abandon()

    def _drained(self) -> bool:
        self._connection.flush()
        return self._connection.pending < PENDING_ANSWER_BYTES

    def _fail(self, error: Exception) -> None:
        """Cuts off an answer that has begun, which the client notices; otherwise answers 500."""
        connection, begun = self._connection, self._response is not None and self._response.headers_sent
        connection.closes = True
        if not isinstance(error, OSError) or not begun:
            log.error(
                "api.answer_failed",
                message="An answer could not be completed",
                path=self._request.path,
                exc_info=error,
            )
        if not begun:
            connection.sendall(
                RefusedRequest(500, "the server failed by an unexpected error, which is in its log").answer()
            )
        self.abandon()
