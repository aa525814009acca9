"""A process that cannot work ends before it begins: at once, with one sentence that says what to do.

Celery only logs what a handler of its signals raises, and gunicorn starts another process for one that ended:
without this a worker would claim events and call nobody, and an API would start for ever.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from scheduler_app.config import InvalidSetting, Settings
from scheduler_app.domain.errors import InvalidField
from scheduler_app.store import STORE_FAULTS, Store, within
from scheduler_app.telemetry import get_logger, serve_metrics
from scheduler_app.telemetry.metrics import Role

log = get_logger(__name__)

#: With this status of a process of its own gunicorn ends, too, instead of starting the next.
EXIT_STATUS = 4
#: How long a start waits for a MongoDB that may be away: it is waited for later as well.
HELLO_SECONDS = 2.0


def refuse_to_start(sentence: str) -> NoReturn:
    """Ends the process with a sentence on stderr."""
    print(f"scheduler: {sentence}", file=sys.stderr, flush=True)
    sys.exit(EXIT_STATUS)


@contextmanager
def starting() -> Iterator[None]:
    """Around the making of a process: ends it by `refuse_to_start` for whatever is raised there."""
    try:
        yield
    except (InvalidSetting, InvalidField) as error:
        refuse_to_start(str(error))
    except Exception as error:
        log.critical("process.cannot_start", message="An error of ours at the start", exc_info=True)
        refuse_to_start(f"cannot start: {type(error).__name__}: {error}")


def serve_metrics_of(settings: Settings, trouble: Callable[[], str | None], role: Role) -> None:
    """Listens on METRICS_PORT, if there is one. Raises InvalidSetting where that cannot be."""
    try:
        serve_metrics(settings.metrics_port, settings.metrics_host, trouble, role)
    except (OSError, OverflowError) as error:
        raise InvalidSetting(
            f"METRICS_PORT {settings.metrics_port} cannot be listened on at {settings.metrics_host}"
            f" ({getattr(error, 'strerror', None) or error}); give each process of a host a port of its own"
        ) from None


def check_replica_set(store: Store) -> None:
    """Raises InvalidSetting for a mongod on its own, which refuses our writes. One that is away may come."""
    try:
        with within(HELLO_SECONDS):
            hello = store.mongo.client.admin.command("hello")
    except STORE_FAULTS as error:
        log.warning("mongodb.awaited", message="MongoDB does not answer yet", error=str(error)[:300])
        return
    # `isreplicaset`: it belongs to a set that nobody has initiated yet.
    if "setName" in hello or hello.get("msg") == "isdbgrid" or hello.get("isreplicaset"):
        return
    raise InvalidSetting(
        "MONGO_URI leads to a mongod on its own, and a replica set is needed (of one will do):"
        " start it with --replSet rs0 and run rs.initiate() once"
    )
