"""The consumer of a worker: it looks at a task's message before Celery does, whichever broker it came by."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from celery.worker.consumer import Consumer

from scheduler_app.broker.held_messages import held_messages
from scheduler_app.broker.malformed import (
    HEAD_LENGTH,
    Malformed,
    check_body,
    check_deliver,
    check_eta,
    check_headers,
    note_dropped,
)
from scheduler_app.broker.task import DELIVER, QUEUE
from scheduler_app.broker_faults import broker_faults
from scheduler_app.clock import clock
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

CONTENT_TYPE = "application/json"
CONTENT_ENCODINGS = ("utf-8", None)


class TolerantConsumer(Consumer):  # type: ignore[misc]
    """Drops a message that is not ours, where Celery's own consumer ends its worker.

    Celery takes headers and bodies for what its own clients make. An exception here ends the process, which
    gives the message back first, to the next one.
    """

    def create_task_handler(self, *args: Any, **kwargs: Any) -> Callable[[Any], None]:
        handle = super().create_task_handler(*args, **kwargs)
        faults = broker_faults(self.connection)
        held_messages.forget()

        def on_task_received(message: Any) -> None:
            try:
                self._check(message)
                handle(message)
                self._note_held(message)
            except Malformed as error:
                self._drop(message, error)
            except faults:
                raise
            except Exception as error:  # what no check of ours has foreseen
                self._drop(message, Malformed("unforeseen", f"{type(error).__name__}: {error}"[:HEAD_LENGTH]))

        return on_task_received

    def on_invalid_task(self, body: Any, message: Any, exc: Exception) -> None:
        # Celery asks for it inside of `handle`. Its own logs a traceback and counts nothing.
        raise Malformed("headers", " ".join(str(exc).split())[:HEAD_LENGTH])

    def _check(self, message: Any) -> None:
        headers = message.headers
        check_headers(headers)
        if headers["task"] != DELIVER and message.delivery_info.get("routing_key") == QUEUE:
            raise Malformed(
                "unknown_task", "only callbacks come by this queue; tasks of your own need another"
            )
        if headers["task"] not in self.strategies:
            raise Malformed("unknown_task", "no task has its name")
        if message.content_type != CONTENT_TYPE or message.content_encoding not in CONTENT_ENCODINGS:
            raise Malformed("content_type", "it is not JSON in UTF-8")
        try:
            body = message.payload  # decoded once: Celery asks for the same
        except Exception:  # whatever decoders raise
            raise Malformed("arguments", "its body cannot be decoded") from None
        args, kwargs = check_body(body)
        if headers["task"] == DELIVER:
            check_eta(headers.get("eta"))
            check_deliver(args, kwargs)

    @staticmethod
    def _note_held(message: Any) -> None:
        if message.headers["task"] == DELIVER and not message.acknowledged:
            eta = message.headers.get("eta")
            held_messages.take(message, datetime.fromisoformat(eta) if eta else clock.now())

    def _drop(self, message: Any, error: Malformed) -> None:
        body = message.body if isinstance(message.body, bytes | str) else b""
        note_dropped(error, {"task": message.headers.get("task"), "body": body[:HEAD_LENGTH]})
        if not message.acknowledged:
            message.reject_log_error(log, self.connection_errors)
