"""How fast the sink itself is: what a raw libcurl client gets out of it when nothing else runs."""

from scheduler_app.version import __version__
from tests.bench.ground import Ground
from tests.bench.load import Asked, drive
from tests.bench.report import Row

REQUESTS = 20_000
CLIENTS = 64
#: As long as a callback's, so that the sink has as much to look through.
HEADERS = (
    f"User-Agent: RRule-Scheduler/{__version__}",
    "Idempotency-Key: bench42-17-20261121T120000Z",
    "webhook-id: bench42-17-20261121T120000Z",
    "webhook-timestamp: 1795262400",
    "X-Scheduler-Attempt: 1",
    "X-Scheduler-Run-Time: 2026-11-21T12:00:00Z",
    "X-Scheduler-Schedule-Id: bench42",
)


def of_sink(made: Ground) -> Row:
    """Requests a second through one client process, and the sink's own CPU for each."""
    made.costs.start()
    driven = drive([Asked("POST", made.url)] * REQUESTS, CLIENTS, HEADERS)
    used = made.costs.since_start(REQUESTS)["cpu_us_per_event"]["sink"]
    made.arrivals()
    return {"ceiling_per_s": driven.per_second, "cpu_us": used, "client_cpu_us": _micro(driven.cpu_s)}


def _micro(seconds: float) -> int:
    return round(seconds / REQUESTS * 1e6)
