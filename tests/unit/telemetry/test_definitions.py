"""Each metric is written once, in `telemetry.metrics`, and is what Prometheus is shown."""

import re
from pathlib import Path

from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.metrics import MetricWrapperBase

from scheduler_app.telemetry import metrics
from scheduler_app.telemetry.metrics import DEFINITIONS, OneWriterHistogram

ROOT = Path(__file__).parents[3]


def test_no_name_is_there_twice() -> None:
    assert len({each.name for each in DEFINITIONS}) == len(DEFINITIONS)


def test_no_other_file_makes_a_metric() -> None:
    """Counters of a test or of `collections` have no name of ours."""
    makers = re.compile(r'(?:Counter|Gauge|Histogram|MetricFamily)\(\s*f?"')
    sources = [path for room in ("api", "beat", "scheduler_app") for path in (ROOT / room).rglob("*.py")]
    assert sources
    assert [path for path in sources if makers.search(path.read_text())] == []


def test_every_metric_of_the_module_is_as_it_is_defined() -> None:
    named = {each.name.removesuffix("_total"): each for each in DEFINITIONS}
    counted = [
        each for each in vars(metrics).values() if isinstance(each, MetricWrapperBase | OneWriterHistogram)
    ]
    assert len(counted) > 30
    for each in counted:
        (family,) = each.describe()
        definition = named.pop(family.name)
        assert (family.type, family.documentation) == (definition.kind, definition.meaning)
        assert getattr(each, "_labelnames", ()) == definition.labels
    # The others are read when they are asked for.
    shown = {family.name for family in REGISTRY.collect()}
    assert not named.keys() & shown


def test_a_family_shows_one_number_or_numbers_by_labels() -> None:
    class Two:
        def collect(self) -> list[object]:
            return [
                metrics.kill_switches.family(2),
                metrics.events.family({"running": 1, "retrying": 0}),
                metrics.origin_attempts.family({("https://a.test:443", "completed"): 3}),
            ]

    registry = CollectorRegistry()
    registry.register(Two())  # type: ignore[arg-type]
    lines = [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]
    assert lines == [
        "scheduler_kill_switches 2.0",
        'scheduler_events{state="running"} 1.0',
        'scheduler_events{state="retrying"} 0.0',
        'scheduler_origin_attempts_total{origin="https://a.test:443",outcome="completed"} 3.0',
    ]
