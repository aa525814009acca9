"""The events that a worker holds, by origin: for Prometheus, and for the report in its process document."""

from collections.abc import Iterator
from typing import Any

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from scheduler_app.clock import monotonic
from scheduler_app.worker.pipeline import Pipeline

#: Origins that a worker names in its report.
REPORTED_ORIGINS = 5
OTHER = "other"


class WorkerGauges(Collector):
    """Reads its gauges when Prometheus asks. Names the busiest origins; `other` stands for the rest."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def collect(self) -> Iterator[Metric]:
        pipeline = self._pipeline
        unrecorded, in_flight = pipeline.backlog.count, pipeline.courier.in_flight
        events = GaugeMetricFamily("scheduler_worker_events", "Events this worker holds", labels=["state"])
        events.add_metric(["unrecorded"], unrecorded)
        events.add_metric(["in_flight"], in_flight)
        events.add_metric(["waiting"], max(0, pipeline.capacity.held - unrecorded - in_flight))
        yield events
        yield GaugeMetricFamily(
            "scheduler_worker_events_limit",
            "Events this worker may hold: WORKER_MAX_EVENTS",
            value=pipeline.capacity.limit,
        )
        yield GaugeMetricFamily(
            "scheduler_oldest_unrecorded_seconds",
            "How long the oldest outcome in memory has been waiting for MongoDB",
            value=pipeline.backlog.age(monotonic()),
        )
        yield self._origins()
        yield self._breakers()
        yield from pipeline.reports.origins.collect()

    def _breakers(self) -> GaugeMetricFamily:
        gauge = GaugeMetricFamily(
            "scheduler_destination_breaker_open",
            "1 for each destination whose breaker this worker found open, 100 at most",
            labels=["destination"],
        )
        for destination in self._pipeline.flow_control.open_breakers(monotonic()):
            gauge.add_metric([destination], 1)
        return gauge

    def _origins(self) -> GaugeMetricFamily:
        loads = self._pipeline.courier.loads()
        gauge = GaugeMetricFamily(
            "scheduler_origin_events",
            "Events of one origin in this worker; postponed: sent back to MongoDB, to come again later",
            labels=["origin", "state"],
        )
        for load in loads:
            gauge.add_metric([load.origin, "in_flight"], load.in_flight)
            gauge.add_metric([load.origin, "waiting"], load.waiting)
            gauge.add_metric([load.origin, "postponed"], load.postponed)
        rest = self._pipeline.courier.in_flight - sum(load.in_flight for load in loads)
        gauge.add_metric([OTHER, "in_flight"], max(0, rest))
        return gauge


def report(pipeline: Pipeline) -> dict[str, Any]:
    """Returns how full the worker is, and the origins that cannot keep up, for its process document."""
    return {
        "events": pipeline.capacity.held,
        "events_limit": pipeline.capacity.limit,
        "unrecorded_seconds": round(pipeline.backlog.age(monotonic()), 1),
        "origins": [
            {
                "origin": load.origin,
                "in_flight": load.in_flight,
                "waiting": load.waiting,
                "postponed": load.postponed,
                "full_seconds": round(load.full_seconds, 1),
            }
            for load in pipeline.courier.loads()
            if load.postponed or load.full_seconds
        ][:REPORTED_ORIGINS],
    }
