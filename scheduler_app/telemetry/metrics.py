"""The metrics of all processes, and the port at which a process shows its own.

Dashboards depend on the names, labels and meanings of metrics, so these do not change; each is written once,
here, and the manual's table is compared with `DEFINITIONS`. A process's port serves `/metrics` for
Prometheus, `/healthz` for the service manager that restarts it. It asks for no key. It listens on loopback
unless METRICS_HOST says otherwise, which is safe only where the network itself restricts access: between
containers, behind a firewall. It shows counts, no names, and takes no commands.
"""

import socket
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from socketserver import ThreadingMixIn
from typing import Any, Literal
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
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


class Role(StrEnum):
    """The kinds of processes that are scraped."""

    API = "api"
    BEAT = "beat"
    WORKER = "worker"
    WITNESS = "witness"


API, BEAT, WORKER, WITNESS = Role
#: For a metric that any process may count.
EVERY = {API, BEAT, WORKER}
Kind = Literal["counter", "gauge", "histogram"]
#: Bounds of the buckets of every histogram.
LAG_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


@dataclass(frozen=True, slots=True)
class Definition:
    """A metric, as processes and the manual show it."""

    kind: Kind
    roles: Set[Role]
    """The processes that show it: those that count it. In any other a zero would mean nothing."""
    name: str
    meaning: str
    labels: tuple[str, ...]

    def family(self, numbers: float | Mapping[str, float] | Mapping[tuple[str, str], float]) -> Metric:
        """Returns what a collector yields: one number, or numbers by the values of one label or of two."""
        kind = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        family = kind(self.name, self.meaning, labels=self.labels)
        for values, number in numbers.items() if isinstance(numbers, Mapping) else [((), numbers)]:
            family.add_metric((values,) if isinstance(values, str) else values, number)
        return family


#: Every metric of every process.
DEFINITIONS: list[Definition] = []


def _define(kind: Kind, roles: Set[Role], name: str, meaning: str, *labels: str) -> Definition:
    DEFINITIONS.append(Definition(kind, roles, name, meaning, labels))
    return DEFINITIONS[-1]


def _counter(roles: Set[Role], name: str, meaning: str, *labels: str) -> Counter:
    _define("counter", roles, name, meaning, *labels)
    return Counter(name, meaning, labels)


def _gauge(
    roles: Set[Role],
    name: str,
    meaning: str,
    *labels: str,
    in_api: Literal["all", "livemin", "livemostrecent"] = "all",
) -> Gauge:
    """`in_api` says which of the values of the API's processes count: they are scraped together."""
    _define("gauge", roles, name, meaning, *labels)
    return Gauge(name, meaning, labels, multiprocess_mode=in_api)


def _histogram(roles: Set[Role], name: str, meaning: str) -> OneWriterHistogram:
    _define("histogram", roles, name, meaning)
    return OneWriterHistogram(name, meaning, buckets=LAG_BUCKETS)


attempts = _counter({WORKER}, "scheduler_attempts_total", "HTTP requests made, by how they ended", "outcome")
lag = _histogram({WORKER}, "scheduler_lag_seconds", "How late an attempt started after it was due")
callback_duration = _histogram(
    {WORKER}, "scheduler_callback_duration_seconds", "How long a receiver took to answer"
)
postponed = _counter(
    {WORKER}, "scheduler_postponed_total", "Claimed events whose origin had no room, and that come later"
)
flow_postponed = _counter(
    {WORKER},
    "scheduler_flow_postponed_total",
    "Events put off because their destination had no room, by why",
    "why",
)
paused_after_failures = _counter(
    {WORKER},
    "scheduler_schedules_paused_after_failures_total",
    "Schedules paused because their last events all failed",
)
held = _counter(
    {BEAT, WORKER}, "scheduler_held_total", "Events held because a kill switch was on when they fell due"
)
blacked_out = _counter(
    {BEAT},
    "scheduler_blacked_out_total",
    "Events that fell due within a blackout, by what became of them",
    "policy",
)
# The API expands and dispatches what people have just made.
flow_put_off = _counter(
    {API, BEAT},
    "scheduler_flow_put_off_total",
    "Events put off to a place in their destination's line, without a message",
)
overlaps = _counter(
    {WORKER},
    "scheduler_overlaps_total",
    "Claimed events that met an earlier one of their schedule, by what became of them",
    "outcome",
)
completions = _counter(
    {API, BEAT},
    "scheduler_completions_total",
    "Events whose receivers said how they went, or did not in time",
    "how",
)
claims = _counter(
    {WORKER}, "scheduler_claims_total", "Events of messages, by what their claim came to", "result"
)
ledger_lines = _counter({WITNESS}, "scheduler_ledger_lines_total", "Lines that were written into the ledger")
ledger_alarms = _counter(
    {WITNESS},
    "scheduler_ledger_alarms_total",
    "Events of these lines that are missing, or that nothing explains",
    "kind",
)
witness_pings = _counter(
    {WITNESS}, "scheduler_witness_pings_total", "Calls of WITNESS_PING_URL: `answered` or `failed`", "result"
)
expanded = _counter({API, BEAT}, "scheduler_events_expanded_total", "Occurrences that became events")
backfilled = _counter(
    EVERY, "scheduler_events_backfilled_total", "Past occurrences that a backfill made events of"
)
backlog_expired = _counter(EVERY, "scheduler_backlog_expired_total", "Late events that a person gave up")
dispatched = _counter(
    {API, BEAT}, "scheduler_events_dispatched_total", "Events that became part of a message"
)
dropped = _counter(
    {WORKER},
    "scheduler_messages_dropped_total",
    "Messages in the queue that were not the scheduler's, by what was wrong",
    "reason",
)
refused = _counter(
    {WORKER}, "scheduler_callbacks_refused_total", "Attempts that this worker's own settings refused to make"
)
heartbeat_failures = _counter(
    EVERY,
    "scheduler_heartbeat_failures_total",
    "Steps of the heartbeat that failed by an unexpected error",
    "step",
)
worker_failures = _counter(
    EVERY,
    "scheduler_worker_failures_total",
    "Background steps of a worker that failed by an unexpected error",
    "step",
)
expired = _counter(
    {BEAT, WORKER},
    "scheduler_events_expired_total",
    "Events that expired, and occurrences that were missed, by policy",
    "policy",
)
messages = _counter({API, BEAT}, "scheduler_messages_published_total", "Messages published")
recovered = _counter(
    {BEAT}, "scheduler_recovered_total", "Events that recovery repaired, by what was lost", "lost"
)
set_aside = _counter(EVERY, "scheduler_schedules_set_aside_total", "Schedules that went to error")
events_set_aside = _counter(
    EVERY, "scheduler_events_set_aside_total", "Events that went to error because their documents are corrupt"
)
pages_discarded = _counter(
    {API, BEAT}, "scheduler_outbox_pages_discarded_total", "Pages of the outbox that were corrupt"
)
_tick = _define("histogram", {BEAT}, "scheduler_tick_duration_seconds", "How long a tick of beat took")
tick_duration = Histogram(_tick.name, _tick.meaning, buckets=LAG_BUCKETS)
tick_at = _gauge({BEAT}, "scheduler_tick_timestamp_seconds", "When the last tick of beat ended, Unix time")
clock_offset = _gauge(
    EVERY, "scheduler_clock_offset_seconds", "mongod's clock minus this host's", in_api="livemostrecent"
)
clock_jump = _gauge(
    EVERY,
    "scheduler_clock_jump_seconds",
    "How far mongod's clock is ahead of the monotonic time that this process follows since it jumped",
    in_api="livemostrecent",
)
dependency_up = _gauge(
    EVERY,
    "scheduler_dependency_up",
    "Whether MongoDB and the broker answered this process last",
    "dependency",
    in_api="livemin",
)
unrecorded = _gauge(
    {WORKER}, "scheduler_unrecorded_outcomes", "Outcomes in memory that MongoDB has not taken yet"
)
requests = _counter(
    {API},
    "scheduler_api_requests_total",
    "Requests that the API answered, by the route's template",
    "method",
    "route",
    "status",
)

# What the API reads of the whole system when it is scraped.
processes = _define("gauge", {API}, "scheduler_nodes", "Processes that reported lately", "role")
events = _define(
    "gauge",
    {API},
    "scheduler_events",
    "Events in each living state; many, as they were counted last",
    "state",
)
oldest_due = _define(
    "gauge",
    {API},
    "scheduler_oldest_due_timestamp_seconds",
    "When the longest-waiting event is or was due, Unix time; 0 when none waits",
)
unserved_queues = _define(
    "gauge",
    {API},
    "scheduler_queue_unserved",
    "1 for a queue that events are in and no worker serves",
    "queue",
)
verdict = _define(
    "gauge",
    {API},
    "scheduler_verdict",
    "0 if all is well, 1 if work fails or is late, 2 if a part is down",
)
reasons = _define("gauge", {API}, "scheduler_reasons", "Reasons of the verdict, by kind; 100 at most", "kind")
kill_switches = _define("gauge", {API}, "scheduler_kill_switches", "Kill switches that are on")
dead_letters = _define(
    "gauge", {API}, "scheduler_dead_letters", "Events in error, which a redrive sends again; 10000 at most"
)
schedules = _define("gauge", {API}, "scheduler_schedules", "Schedules in each state; 100000 at most", "state")
queue_length = _define("gauge", {API}, "scheduler_queue_length", "Messages that no worker has taken")

# What a worker reads in its own memory when it is scraped.
worker_events = _define("gauge", {WORKER}, "scheduler_worker_events", "Events this worker holds", "state")
worker_events_limit = _define(
    "gauge", {WORKER}, "scheduler_worker_events_limit", "Events this worker may hold: WORKER_MAX_EVENTS"
)
oldest_unrecorded = _define(
    "gauge",
    {WORKER},
    "scheduler_oldest_unrecorded_seconds",
    "How long the oldest outcome in memory has been waiting for MongoDB",
)
origin_events = _define(
    "gauge",
    {WORKER},
    "scheduler_origin_events",
    "Events of one origin in this worker; postponed: sent back to MongoDB, to come again later",
    "origin",
    "state",
)
breaker_open = _define(
    "gauge",
    {WORKER},
    "scheduler_destination_breaker_open",
    "1 for each destination whose breaker this worker found open, 100 at most",
    "destination",
)
origin_attempts = _define(
    "counter",
    {WORKER},
    "scheduler_origin_attempts_total",
    "Attempts by origin and by how they ended; `other` is what is beyond the first origins",
    "origin",
    "outcome",
)
origin_seconds = _define(
    "counter", {WORKER}, "scheduler_origin_attempt_seconds_total", "How long they took together", "origin"
)


class OwnMetrics(Collector):
    """The metrics of a registry that a process of this role shows."""

    def __init__(self, role: Role, source: Collector = REGISTRY) -> None:
        self._source = source
        self._others = {each.name.removesuffix("_total") for each in DEFINITIONS if role not in each.roles}

    def collect(self) -> Iterator[Metric]:
        return (family for family in self._source.collect() if family.name not in self._others)


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
    # By default it wakes twice a second to see whether it was shut down, which nobody does.
    run = partial(server.serve_forever, poll_interval=3_600.0)
    threading.Thread(target=run, name="metrics", daemon=True).start()
