"""Checks made before any process is started, so that a wrong setting ends in one sentence and not in logs."""

import errno
from typing import Any

from kombu.connection import Connection
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from scheduler_app.cli.errors import CannotStart
from scheduler_app.embedded import is_free
from scheduler_app.health.driver_errors import error_summary, without_passwords
from scheduler_app.health.replica_set import REMEDY, is_replica_set

_TIMEOUT_SECONDS = 5
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
    try:
        with MongoClient[dict[str, Any]](uri, serverSelectionTimeoutMS=_TIMEOUT_SECONDS * 1000) as client:
            hello = client.admin.command("hello")
            client.admin.command("ping")
    except (PyMongoError, ValueError) as error:
        raise _no_answer("MONGO_URI", uri, error) from None
    if not is_replica_set(hello):
        raise CannotStart(
            f"MONGO_URI: {without_passwords(uri)} is a mongod that is no replica set: {REMEDY}."
        )


def check_broker(setting: str, url: str, sentinel_master: str) -> None:
    """Raises `CannotStart` when the broker does not answer; `setting` is the one that holds its
    address."""
    options: dict[str, Any] = {"socket_connect_timeout": 2, "socket_timeout": 2, "max_retries": 1}
    if url.startswith("sentinel:"):
        options["master_name"] = sentinel_master
    try:
        with Connection(url, connect_timeout=2, transport_options=options) as connection:  # type: ignore[no-untyped-call]
            connection.channel()
    except Exception as error:  # each transport has errors of its own
        raise _no_answer(setting, url, error) from None


def _no_answer(setting: str, url: str, error: Exception) -> CannotStart:
    return CannotStart(f"{setting}: {without_passwords(url)} does not answer: {error_summary(error)}.")
