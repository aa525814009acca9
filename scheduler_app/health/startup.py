"""Ends a process that cannot work at its start, with one sentence that says what to do.

Celery only logs the exceptions of signal handlers, and gunicorn replaces a process that ended: without this a
worker would claim events and send nothing, and an API would restart endlessly.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NoReturn

from scheduler_app.config import InvalidSetting, Settings
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.ids import TENANT
from scheduler_app.health.check import REPLICA_SET_REMEDY, is_replica_set
from scheduler_app.store import STORE_FAULTS, Store, within
from scheduler_app.store.mongo import PyMongoError
from scheduler_app.telemetry import get_logger, serve_metrics
from scheduler_app.telemetry.metrics import Role

log = get_logger(__name__)

#: gunicorn ends, too, when one of its processes ends with this status, instead of replacing the process.
EXIT_STATUS = 4
#: How long a start waits for MongoDB. A process that starts without it waits for it later.
HELLO_SECONDS = 2.0


def refuse_to_start(sentence: str) -> NoReturn:
    """Prints a sentence to stderr and ends the process."""
    # The settings, which say the form of logs, may be what is wrong: the variable is asked by itself.
    if os.environ.get("LOG_FORMAT") == "json":
        line = {
            "message": sentence,
            "event": "process.refused",
            "level": "critical",
            "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        said = json.dumps(line, ensure_ascii=False)
    else:
        said = f"scheduler: {sentence}"
    print(said, file=sys.stderr, flush=True)
    sys.exit(EXIT_STATUS)


@contextmanager
def starting() -> Iterator[None]:
    """Encloses the start of a process, and ends the process by `refuse_to_start` for every exception."""
    try:
        yield
    except (InvalidSetting, InvalidField) as error:
        refuse_to_start(str(error))
    except Exception as error:
        log.critical("process.cannot_start", message="An unexpected error at the start", exc_info=True)
        refuse_to_start(f"cannot start: {type(error).__name__}: {error}")


def serve_metrics_of(settings: Settings, trouble: Callable[[], str | None], role: Role) -> None:
    """Listens on METRICS_PORT, unless that is 0. Raises InvalidSetting when the port cannot be used."""
    try:
        serve_metrics(settings.metrics_port, settings.metrics_host, trouble, role)
    except (OSError, OverflowError) as error:
        raise InvalidSetting(
            f"METRICS_PORT {settings.metrics_port} cannot be listened on at {settings.metrics_host}"
            f" ({getattr(error, 'strerror', None) or error}); give each process of a host a port of its own"
        ) from None


def check_has_key(settings: Settings, store: Store, now: datetime) -> None:
    """Raises InvalidSetting for an API beyond loopback that no key could open: it has no API_KEYS, and no key
    of the installation is stored that may make others. Without an answer of MongoDB it starts: it opens for
    nobody without a key."""
    if settings.api_keys or not settings.needs_key:
        return
    try:
        with within(HELLO_SECONDS):
            stored = store.api_keys.of(TENANT)
    except STORE_FAULTS as error:
        log.warning("mongodb.awaited", message="MongoDB does not answer yet", error=str(error)[:300])
        return
    for key in stored:
        lasts = key.expires_at is None or key.expires_at > now
        if lasts and key.is_installations and KeyScope.ADMIN in key.scopes:
            return
    raise InvalidSetting(
        f"API_KEYS must be set when API_HOST is {settings.api_host}, or a key be stored: `scheduler keys"
        " create NAME --admin` makes the first one"
    )


def check_replica_set(store: Store) -> None:
    """Raises InvalidSetting for a mongod without a replica set, or a server that is not a mongod. A server
    that does not answer yet, or not in time, or does not let this process in, is waited for.
    """
    try:
        with within(HELLO_SECONDS):
            hello = store.mongo.hello()
    except STORE_FAULTS as error:
        log.warning("mongodb.awaited", message="MongoDB does not answer yet", error=str(error)[:300])
        return
    except PyMongoError as error:
        said = " ".join(str(error).split())[:300]
        raise InvalidSetting(
            f"MONGO_URI leads to a server that refuses a first question ({said});"
            " it must be a MongoDB of release 6.0 or later"
        ) from None
    # `isreplicaset`: the replica set is configured, but not initiated yet.
    if is_replica_set(hello) or hello.get("isreplicaset"):
        return
    raise InvalidSetting(
        f"MONGO_URI leads to a mongod that is no replica set, which is needed: {REPLICA_SET_REMEDY}"
    )
