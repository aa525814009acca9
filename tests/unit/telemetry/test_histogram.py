"""The histogram of what is measured at each callback shows what prometheus_client's own would."""

import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from scheduler_app.telemetry.metrics import OneWriterHistogram

BUCKETS = (0.001, 0.5, 1, 300)


def test_it_shows_what_a_histogram_of_prometheus_client_shows() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    histograms = (
        OneWriterHistogram("lag_seconds", "How late", buckets=BUCKETS, registry=ours),
        Histogram("lag_seconds", "How late", buckets=BUCKETS, registry=theirs),
    )
    for histogram in histograms:
        for value in (0.0, 0.001, 0.0011, 0.5, 0.75, 1.0, 299.0, 300.0, 300.5, 1e9):
            histogram.observe(value)

    assert _shown(ours) == _shown(theirs)


def test_the_registry_refuses_a_second_metric_of_its_name() -> None:
    registry = CollectorRegistry()
    OneWriterHistogram("lag_seconds", "How late", buckets=BUCKETS, registry=registry)
    with pytest.raises(ValueError, match="lag_seconds"):
        Histogram("lag_seconds", "How late", buckets=BUCKETS, registry=registry)


def _shown(registry: CollectorRegistry) -> list[str]:
    """What Prometheus reads, but for the time at which the metric was made."""
    text = generate_latest(registry).decode()
    return [line for line in text.splitlines() if not line.startswith("lag_seconds_created")]
