"""The metrics of all processes, and the port at which a process shows its own.

Dashboards depend on the names and meanings of metrics, so these do not change. A process's port serves
`/metrics` for Prometheus, `/healthz` for the service manager that restarts it. It asks for no key. It
listens on loopback unless METRICS_HOST says otherwise, which is safe only where the network itself
restricts access: between containers, behind a firewall. It shows counts, no names, and takes no commands.
"""

import socket
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, make_wsgi_app
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector


class OneWriterHistogram(Collector):
    """Shows what a `prometheus_client.Histogram` shows. It takes no lock, and so an observation costs a fifth
    (0.5 µs against 2.6): one thread of a process observes, any thread may collect. `test_delivery.py` sees
    that there is only one."""

    def __init__(
        self,
        name: str,
        documentation: str,
        *,
        buckets: Sequence[float],
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        """`buckets` are the upper bounds, rising; what is above all of them is counted, too."""
        self._name = name
        self._documentation = documentation
        self._bounds = tuple(map(float, buckets))
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0
        self._created = time.time()
        registry.register(self)

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def describe(self) -> Iterable[HistogramMetricFamily]:
        """The name, for the registry."""
        return [HistogramMetricFamily(self._name, self._documentation)]

    def collect(self) -> Iterable[HistogramMetricFamily]:
        """As Prometheus reads it: each bucket has what is in the lower ones, too."""
        family = HistogramMetricFamily(self._name, self._documentation)
        counts, total, buckets = tuple(self._counts), 0, []
        for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
            total += count
            buckets.append(("+Inf" if bound == float("inf") else str(bound), total))
        family.add_metric([], buckets, self._sum)
        family.add_sample(f"{self._name}_created", {}, self._created)
        return [family]


LAG_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

attempts = Counter("scheduler_attempts_total", "HTTP requests made, by how they ended", ["outcome"])
lag = OneWriterHistogram(
    "scheduler_lag_seconds", "How late an attempt started after it was due", buckets=LAG_BUCKETS
)
callback_duration = OneWriterHistogram(
    "scheduler_callback_duration_seconds", "How long a receiver took to answer", buckets=LAG_BUCKETS
)
postponed = Counter(
    "scheduler_postponed_total", "Claimed events whose origin had no room, and that come later"
)
flow_postponed = Counter(
    "scheduler_flow_postponed_total", "Events put off because their destination had no room, by why", ["why"]
)
paused_after_failures = Counter(
    "scheduler_schedules_paused_after_failures_total", "Schedules paused because their last events all failed"
)
held = Counter("scheduler_held_total", "Events held because a kill switch was on when they fell due")
blacked_out = Counter(
    "scheduler_blacked_out_total",
    "Events that fell due within a blackout, by what became of them",
    ["policy"],
)
flow_put_off = Counter(
    "scheduler_flow_put_off_total", "Events put off to a place in their destination's line, without a message"
)
overlaps = Counter(
    "scheduler_overlaps_total",
    "Claimed events that met an earlier one of their schedule, by what became of them",
    ["outcome"],
)
completions = Counter(
    "scheduler_completions_total", "Events whose receivers said how they went, or did not in time", ["how"]
)
claims = Counter("scheduler_claims_total", "Events of messages, by what their claim came to", ["result"])
expanded = Counter("scheduler_events_expanded_total", "Occurrences that became events")
backfilled = Counter("scheduler_events_backfilled_total", "Past occurrences that a backfill made events of")
backlog_expired = Counter("scheduler_backlog_expired_total", "Late events that a person gave up")
dispatched = Counter("scheduler_events_dispatched_total", "Events that became part of a message")
dropped = Counter(
    "scheduler_messages_dropped_total",
    "Messages in the queue that were not the scheduler's, by what was wrong",
    ["reason"],
)
refused = Counter(
    "scheduler_callbacks_refused_total", "Attempts that this worker's own settings refused to make"
)
heartbeat_failures = Counter(
    "scheduler_heartbeat_failures_total",
    "Steps of the heartbeat that failed by an unexpected error",
    ["step"],
)
worker_failures = Counter(
    "scheduler_worker_failures_total",
    "Background steps of a worker that failed by an unexpected error",
    ["step"],
)
expired = Counter(
    "scheduler_events_expired_total",
    "Events that expired, and occurrences that were missed, by policy",
    ["policy"],
)
messages = Counter("scheduler_messages_published_total", "Messages published")
recovered = Counter("scheduler_recovered_total", "Events that recovery repaired, by what was lost", ["lost"])
set_aside = Counter("scheduler_schedules_set_aside_total", "Schedules that went to error")
events_set_aside = Counter(
    "scheduler_events_set_aside_total", "Events that went to error because their documents are corrupt"
)
pages_discarded = Counter("scheduler_outbox_pages_discarded_total", "Pages of the outbox that were corrupt")
tick_duration = Histogram(
    "scheduler_tick_duration_seconds", "How long a tick of beat took", buckets=LAG_BUCKETS
)
tick_at = Gauge("scheduler_tick_timestamp_seconds", "When the last tick of beat ended, Unix time")
# The API's processes are scraped together: they share a clock, and the worst `dependency_up` counts.
clock_offset = Gauge(
    "scheduler_clock_offset_seconds",
    "mongod's clock minus this host's",
    multiprocess_mode="livemostrecent",
)
clock_jump = Gauge(
    "scheduler_clock_jump_seconds",
    "How far mongod's clock is ahead of the monotonic time that this process follows since it jumped",
    multiprocess_mode="livemostrecent",
)
dependency_up = Gauge(
    "scheduler_dependency_up",
    "Whether MongoDB and the broker answered this process last",
    ["dependency"],
    multiprocess_mode="livemin",
)
unrecorded = Gauge("scheduler_unrecorded_outcomes", "Outcomes in memory that MongoDB has not taken yet")
requests = Counter(
    "scheduler_api_requests_total",
    "Requests that the API answered, by the route's template",
    ["method", "route", "status"],
)


class Role(StrEnum):
    """The kinds of processes that are scraped."""

    API = "api"
    BEAT = "beat"
    WORKER = "worker"


#: The roles that count each metric; any other role would show a meaningless zero.
OWNERS: Mapping[MetricWrapperBase | OneWriterHistogram, frozenset[Role]] = {
    **dict.fromkeys(
        (
            attempts,
            lag,
            callback_duration,
            postponed,
            flow_postponed,
            overlaps,
            claims,
            dropped,
            refused,
            unrecorded,
        ),
        frozenset({Role.WORKER}),
    ),
    **dict.fromkeys((recovered, tick_duration, tick_at), frozenset({Role.BEAT})),
    # The API expands and dispatches what people have just made.
    **dict.fromkeys(
        (expanded, dispatched, flow_put_off, messages, pages_discarded, completions),
        frozenset({Role.API, Role.BEAT}),
    ),
    blacked_out: frozenset({Role.BEAT}),
    expired: frozenset({Role.BEAT, Role.WORKER}),
    held: frozenset({Role.BEAT, Role.WORKER}),
    paused_after_failures: frozenset({Role.WORKER}),
    requests: frozenset({Role.API}),
}


class OwnMetrics(Collector):
    """The metrics of a registry that a process of this role counts."""

    def __init__(self, role: Role, source: Collector = REGISTRY) -> None:
        self._source = source
        self._others = set(_names(metric for metric, roles in OWNERS.items() if role not in roles))

    def collect(self) -> Iterator[Metric]:
        return (family for family in self._source.collect() if family.name not in self._others)


def _names(owned: Iterable[MetricWrapperBase | OneWriterHistogram]) -> Iterator[str]:
    return (family.name for metric in owned for family in metric.describe())


def own_registry(role: Role, source: Collector = REGISTRY) -> CollectorRegistry:
    """Returns the registry that a process of this role shows."""
    registry = CollectorRegistry()
    registry.register(OwnMetrics(role, source))
    return registry


_TEXT = ("Content-Type", "text/plain; charset=utf-8")


class _MetricsServer(ThreadingMixIn, WSGIServer):
    # A scraper that hangs blocks its own thread only.
    daemon_threads = True


class _MetricsServer6(_MetricsServer):
    address_family = socket.AF_INET6


class _Silent(WSGIRequestHandler):
    #: Seconds to wait for a client that sends nothing.
    timeout = 10

    def log_message(self, format: str, *args: Any) -> None:
        """Does not log scrapes."""


def serve_metrics(port: int, host: str, trouble: Callable[[], str | None], role: Role) -> None:
    """Listens in a thread until the process ends, and shows the metrics of `role`; port 0 means not at all.

    `trouble` returns what hangs, None for nothing: `/healthz` answers 503 with that text, or 200. Raises
    OSError when the port is taken.
    """
    if not port:
        return
    metrics: Callable[..., Iterable[bytes]] = make_wsgi_app(own_registry(role))

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/healthz":
            return metrics(environ, start_response)
        hangs = trouble()
        start_response("503 Service Unavailable" if hangs else "200 OK", [_TEXT])
        return [f"{hangs or 'ok'}\n".encode()]

    kind = _MetricsServer6 if ":" in host else _MetricsServer
    server = make_server(host, port, answer, kind, _Silent)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
