"""Checks made before any process is started, so that a wrong setting ends in one sentence and not in logs.

They import the drivers of servers that are named: without any, the embedded ones start while these load.
"""

import errno
from typing import Any

from scheduler_app.cli.errors import CannotStart
from scheduler_app.config import InvalidSetting, Settings
from scheduler_app.embedded import is_free
from scheduler_app.health.driver_errors import error_summary, without_passwords
from scheduler_app.health.replica_set import REMEDY, is_replica_set

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
            f"MONGO_URI: {without_passwords(uri)} is a mongod that is no replica set: {REMEDY}."
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
