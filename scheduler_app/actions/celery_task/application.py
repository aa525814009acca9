"""A Celery application that only sends: the one door to the broker and results of another application."""

from collections.abc import Mapping, Sequence
from typing import Any

from celery import Celery
from kombu.exceptions import EncodeError

from scheduler_app.broker_faults import broker_faults
from scheduler_app.config.settings import PLAIN_TLS, BrokerTls
from scheduler_app.domain.celery_task_action import CeleryTaskAction

#: For each step of a call to a broker or to a result backend, in seconds.
PATIENCE_SECONDS = 4.0
#: A connection that has died since the last task is opened again, once.
_RETRY_POLICY = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}


class UnsendableTask(Exception):
    """No broker can carry the task."""


class RemoteApplication:
    """Belongs to one thread. It connects when it is first used."""

    def __init__(self, url: str, backend: str | None, tls: BrokerTls = PLAIN_TLS) -> None:
        # It knows no backend: Celery would subscribe to the result of each task that it sends.
        self._app = Celery("rrule-scheduler-tasks", set_as_current=False)
        patience = {"socket_timeout": PATIENCE_SECONDS, "socket_connect_timeout": PATIENCE_SECONDS}
        # Without a confirmation, RabbitMQ may lose what the socket has taken.
        confirmed = {"confirm_publish": True, "read_timeout": PATIENCE_SECONDS}
        self._app.conf.update(
            task_serializer="json",
            broker_connection_timeout=PATIENCE_SECONDS,
            broker_use_ssl=tls.options(url),
            broker_transport_options=confirmed if url.startswith("amqp") else patience,
            task_send_sent_event=False,
        )
        # By its URL: in a worker's environment, CELERY_BROKER_URL is our own broker's, and Celery prefers it.
        self._connection = self._app.connection_for_write(url)
        self._producer = self._app.amqp.Producer(self._connection, auto_declare=False)
        self._backend = _results_at(backend, tls) if backend else None
        self.faults = broker_faults(self._connection)
        if self._backend is not None:
            self.faults += broker_faults(self._backend)

    def send(
        self,
        task_id: str,
        action: CeleryTaskAction,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        headers: Mapping[str, Any],
    ) -> None:
        """Returns when the broker has the task. Raises Unsendable, or one of `faults`."""
        options: dict[str, Any] = {
            "queue": action.queue,
            "priority": action.priority,
            "expires": action.expires,
        }
        try:
            self._app.send_task(
                action.task,
                args=list(args),
                kwargs=dict(kwargs),
                task_id=task_id,
                headers=dict(headers),
                ignore_result=not action.wait,
                producer=self._producer,
                retry=True,
                retry_policy=_RETRY_POLICY,
                **{name: value for name, value in options.items() if value is not None},
            )
        except (EncodeError, TypeError, ValueError) as error:
            raise UnsendableTask(f"{type(error).__name__}: {error}") from error

    def results(self, task_ids: Sequence[str]) -> list[dict[str, Any] | None]:
        """What the result backend has of these tasks, in one call; None of one that it does not know.

        Raises a DecodeError of kombu for a result that is no JSON, or one of `faults`.
        """
        if not task_ids:
            return []
        found = self._key_value.mget([self._key_value.get_key_for_task(task_id) for task_id in task_ids])
        return [None if raw is None else self._read(raw) for raw in found]

    def forget(self, task_id: str) -> None:
        """Removes a result."""
        self._key_value.delete(self._key_value.get_key_for_task(task_id))

    def close(self) -> None:
        self._connection.release()
        if self._backend is not None:
            self._backend.client.close()
            self._backend.client.connection_pool.disconnect()

    @property
    def _key_value(self) -> Any:
        return self._backend

    def _read(self, raw: bytes) -> dict[str, Any] | None:
        # `decode_result` would build an exception of a class that the result names.
        meta = self._key_value.decode(raw)
        return meta if isinstance(meta, dict) else None


def _results_at(url: str, tls: BrokerTls) -> Any:
    """A result backend, which connects when it is first asked."""
    app = Celery("rrule-scheduler-results", backend=url, set_as_current=False)
    app.conf.update(
        result_serializer="json",
        # A result that is no JSON is never unpickled: it could run code here.
        result_accept_content=["json"],
        accept_content=["json"],
        result_backend_always_retry=False,
        redis_socket_timeout=PATIENCE_SECONDS,
        redis_socket_connect_timeout=PATIENCE_SECONDS,
        redis_retry_on_timeout=False,
        redis_backend_use_ssl=tls.options(url),
    )
    return app.backend
