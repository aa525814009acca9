"""`/metrics`: what the API's processes count, and what the store knows of the whole fleet, read by index
alone."""

import os
from collections.abc import Iterator
from contextlib import suppress

from flask import Flask, Response
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from api.services import Services, services
from scheduler_app.clock import monotonic
from scheduler_app.store import STORE_FAULTS, within

#: A scrape that lasts longer is lost with all that it holds.
ANSWER_SECONDS = 1.5


class Fleet(Collector):
    """Read anew at each scrape. What does not answer is left out (`scheduler_dependency_up` says so): a gauge
    that stood still would look like a fleet that does."""

    def __init__(self, made: Services) -> None:
        self._made = made

    def collect(self) -> Iterator[Metric]:
        publisher, started = self._made.publisher, monotonic()
        wait = publisher.ask_queue_length()
        with suppress(*STORE_FAULTS), within(ANSWER_SECONDS):
            yield from list(self._stored())
        with suppress(*publisher.unavailable):
            length = wait(started + ANSWER_SECONDS - monotonic())
            yield _gauge("scheduler_queue_length", "Messages that no worker has taken", length)

    def _stored(self) -> Iterator[Metric]:
        store = self._made.store
        events = GaugeMetricFamily("scheduler_events", "Events in each living state", labels=["state"])
        for state, count in store.events.living_by_state().items():
            events.add_metric([state], count)
        yield events
        oldest = store.events.oldest_due()
        yield _gauge(
            "scheduler_oldest_due_timestamp_seconds",
            "When the longest-waiting event is or was due, Unix time; 0 when none waits",
            oldest.timestamp() if oldest else 0.0,
        )
        nodes = GaugeMetricFamily("scheduler_nodes", "Processes that reported lately", labels=["role"])
        alive = [node["role"] for node in store.nodes.alive()]
        for role in sorted({*alive, "api", "beat", "worker"}):
            nodes.add_metric([role], alive.count(role))
        yield nodes


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(name, about, value=value)


def _counted() -> CollectorRegistry:
    """This process's own, or those of all that count together under one gunicorn."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return REGISTRY
    together = CollectorRegistry()
    MultiProcessCollector(together)
    return together


def register(app: Flask) -> None:
    @app.get("/metrics")
    def metrics() -> Response:
        """For Prometheus; it needs a key when keys are set, as the API does."""
        fleet = CollectorRegistry()
        fleet.register(Fleet(services()))
        # The fleet first: asking it is what tells whether its parts answer.
        text = generate_latest(fleet) + generate_latest(_counted())
        return Response(text, content_type=CONTENT_TYPE_LATEST)
