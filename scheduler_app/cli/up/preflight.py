"""Checks made before any process is started, so that a wrong setting ends in one sentence and not in logs;
ports are reserved, so that two runs that start at the same moment never choose the same one. The checks
import the drivers of servers that are named: without any, the embedded ones start while these load.
"""

import errno
import socket
import sys
from contextlib import ExitStack
from typing import Any

from scheduler_app.cli.click_extensions import CannotStart
from scheduler_app.config import InvalidSetting, Settings
from scheduler_app.embedded import free_port, is_free
from scheduler_app.health.check import REPLICA_SET_REMEDY, error_summary, is_replica_set, without_passwords

_TIMEOUT_SECONDS = 5
_BROKER_STEP_SECONDS = 2
_HIGHEST_PORT = 65_535


def check_port(setting: str, host: str, port: int, remedy: str) -> None:
    """Raises `CannotStart` when a service could not listen there."""
    if port > _HIGHEST_PORT:
        raise CannotStart(f"{setting}: there is no port {port}; {remedy}.")
    try:
        free = is_free(port, host)
    except OSError as error:
        if error.errno == errno.EACCES:
            raise CannotStart(f"{setting}: {port} is a port for root only; {remedy}.") from None
        raise CannotStart(
            f"API_HOST: nothing can listen on {host} ({error.strerror}); give an address of this machine."
        ) from None
    if not free:
        raise CannotStart(f"{setting}: port {port} of {host} is taken by another program; {remedy}.")


def check_mongo(uri: str) -> None:
    """Raises `CannotStart` when there is no replica set behind MONGO_URI within 5 s."""
    from pymongo import MongoClient
    from pymongo.errors import PyMongoError

    try:
        with MongoClient[dict[str, Any]](uri, serverSelectionTimeoutMS=_TIMEOUT_SECONDS * 1000) as client:
            hello = client.admin.command("hello")
            client.admin.command("ping")
    except (PyMongoError, ValueError) as error:
        raise _no_answer("MONGO_URI", uri, error) from None
    if not is_replica_set(hello):
        raise CannotStart(
            f"MONGO_URI: {without_passwords(uri)} is a mongod that is no replica set: {REPLICA_SET_REMEDY}."
        )


def check_broker(setting: str, settings: Settings) -> str:
    """Returns the broker's title. Raises `CannotStart` when it does not answer; `setting` is the one that
    holds its address."""
    from kombu.connection import Connection

    from scheduler_app.broker.backends import backend_of

    try:
        backend = backend_of(settings.broker)
    except InvalidSetting as error:
        raise CannotStart(str(error)) from None
    options = (
        backend.transport_options(settings)
        | backend.impatient_options(_BROKER_STEP_SECONDS)
        | {"max_retries": 1}
    )
    try:
        with Connection(  # type: ignore[no-untyped-call]
            settings.broker,
            ssl=settings.broker_tls.options(settings.broker),
            connect_timeout=_BROKER_STEP_SECONDS,
            transport_options=options,
        ) as connection:
            connection.channel()
            return backend.title
    except Exception as error:  # each transport has errors of its own
        raise _no_answer(setting, settings.broker, error) from None


def _no_answer(setting: str, url: str, error: Exception) -> CannotStart:
    return CannotStart(f"{setting}: {without_passwords(url)} does not answer: {error_summary(error)}.")


class ReservedPorts(ExitStack):
    """Reserves ports until it is closed, or its process ends.

    A port looks free until the service that listens on it has started, seconds later. Until then an abstract
    Unix socket with the port's number in its name tells other runs, of any user, that it is reserved. Only
    Linux has such sockets: elsewhere the first service to listen wins, as between any two programs.
    """

    def reserve(self, setting: str, host: str, port: int, remedy: str) -> int:
        """Reserves a port. Raises `CannotStart` with the setting's name when another program, another run,
        or another service of this run has it."""
        check_port(setting, host, port, remedy)
        if not self._reserve(port):
            raise CannotStart(
                f"{setting}: port {port} is taken by another `scheduler up`, or twice; {remedy}."
            )
        return port

    def flower(self, settings: Settings) -> int:
        """Reserves FLOWER_PORT; unless that is set, 5555 or, where that is taken, any free port."""
        if "FLOWER_PORT" in settings.given:
            return self.reserve(
                "FLOWER_PORT", "127.0.0.1", settings.flower_port, "choose another with --flower-port"
            )
        port = settings.flower_port
        while not (is_free(port) and self._reserve(port)):
            port = free_port()
        return port

    def metrics(self, settings: Settings) -> None:
        """Reserves METRICS_PORT for beat, and the ports after it for the workers, that of commands last."""
        first = settings.metrics_port
        count = 1 + settings.worker_processes + bool(settings.allowed_commands)
        for port in range(first, first + count) if first else ():
            remedy = f"choose another: beat and the workers take {count} ports from it on"
            self.reserve("METRICS_PORT", settings.metrics_host, port, remedy)

    def _reserve(self, port: int) -> bool:
        if not sys.platform.startswith("linux"):
            return True
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0rrule-scheduler/port/{port}")
        except OSError:
            claim.close()
            return False
        self.callback(claim.close)
        return True
