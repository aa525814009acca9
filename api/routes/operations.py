"""Routes outside /api/v1 for those who run it: /health, /readyz, /metrics and the receiver /echo.

The metrics are the counters of the API's processes, and gauges of the whole system, read from the store.
`/echo` says what it was sent and repeats nothing of it: a body may hold a secret, and answers are kept.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache

from flask import Flask, Response, jsonify, request
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from scheduler_app.api.auth import is_local_name
from scheduler_app.api.blueprint import accepting_anything
from scheduler_app.api.json_types import View
from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.services import Services, require_installation, services, tenant
from scheduler_app.domain.http_action import METHODS
from scheduler_app.health.check import Check
from scheduler_app.health.status import SystemState, look_at_system, reasons_by_kind
from scheduler_app.health.work import system_figures
from scheduler_app.store.faults import STORE_FAULTS
from scheduler_app.store.mongo import within
from scheduler_app.telemetry import metrics
from scheduler_app.telemetry.metrics import Role, own_registry


def register_health(app: Flask) -> None:
    @app.get("/health")
    @app.get("/healthz")
    def health() -> Response:
        """This process answers."""
        return jsonify(status="ok")

    @app.get("/readyz")
    def ready() -> tuple[Response, int]:
        """Says whether everything that a callback needs is there, and what is missing."""
        assembly = services()
        look = look_at_system(tenant(), assembly.store, assembly.publisher, assembly.now())
        fine = all(check.ok for check in look.ready)
        body = {
            "status": "ready" if fine else "not ready",
            "verdict": look.status.verdict.value,
            "checks": _checks_shown(look.ready),
        }
        # One receiver that fails takes no API out of service: the machinery alone decides the status code.
        return jsonify(body), 200 if fine else 503


def _checks_shown(ready: Sequence[Check]) -> dict[str, View]:
    checks: dict[str, View] = {}
    for check in ready:
        checks[check.name] = {"ok": check.ok, **check.facts}
        if check.remedy or not check.ok:
            word = "warning" if check.ok else "detail"
            checks[check.name][word] = f"{check.found}; {check.remedy}".removesuffix("; ")
    return checks


#: Prometheus drops a scrape that lasts too long; a gauge that takes longer than this is left out of it.
ANSWER_SECONDS = 1.5
#: What the gauge of the verdict counts up to.
VERDICTS = list(SystemState)
#: The label of requests to no route, and of methods that HTTP does not define.
OTHER = "other"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Fleet(Collector):
    """Gauges of the whole system, read at each scrape. Those that nobody answers in time are left out
    (`scheduler_dependency_up` tells): a gauge that kept its value would look fine."""

    def __init__(self, assembly: Services) -> None:
        self._assembly = assembly

    def collect(self) -> Iterator[Metric]:
        assembly = self._assembly
        look = look_at_system(tenant(), assembly.store, assembly.publisher, assembly.now())
        yield metrics.verdict.family(VERDICTS.index(look.status.verdict))
        yield metrics.reasons.family(reasons_by_kind(look.status.reasons))
        read: list[Metric] = []
        # Collected before they are given on: what gives them on must not count for the time that MongoDB has.
        # A MongoDB that has not answered the checks is not waited for a second time.
        if look.ready[0].ok:
            with suppress(*STORE_FAULTS), within(ANSWER_SECONDS):
                # What was read before a fault is kept.
                read.extend(system_figures(tenant(), assembly.store))
        yield from read
        for check in look.ready:
            if isinstance(length := check.facts.get("queue_length"), int):
                yield metrics.queue_length.family(length)


def _counted() -> CollectorRegistry:
    """The counters of this process, or of all processes of one gunicorn together."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return own_registry(Role.API, REGISTRY)
    together = CollectorRegistry()
    MultiProcessCollector(together)
    return own_registry(Role.API, together)


def _count(response: Response) -> Response:
    """Counts a request under its route's template: paths hold ids, and there would be too many labels."""
    route = _template(request.url_rule.rule) if request.url_rule else OTHER
    method = request.method if request.method in _METHODS else OTHER
    metrics.requests.labels(method, route, str(response.status_code)).inc()
    return response


@lru_cache(maxsize=256)
def _template(rule: str) -> str:
    """`/api/v1/schedules/{schedule_id}`, as in the specification."""
    return re.sub(r"<(?:[^<>:]*:)?([^<>]*)>", r"{\1}", rule)


def register_metrics(app: Flask) -> None:
    app.after_request(_count)

    @app.get("/metrics")
    def show_metrics() -> Response:
        """For Prometheus; it needs a key when keys are set, one of the installation: it shows the whole."""
        require_installation()
        fleet = CollectorRegistry()
        fleet.register(Fleet(services()))
        # The gauges first: reading them sets `scheduler_dependency_up`.
        text = generate_latest(fleet) + generate_latest(_counted())
        return Response(text, content_type=CONTENT_TYPE_LATEST)


ECHO_PATH = "/echo"
#: What `/echo/<status>` may answer.
ECHO_STATUSES = range(200, 600)


def register_echo(app: Flask) -> None:
    @app.route(ECHO_PATH, methods=list(METHODS), provide_automatic_options=False)
    @app.route(f"{ECHO_PATH}/<int:status>", methods=list(METHODS), provide_automatic_options=False)
    @accepting_anything
    def echo(status: int = 200) -> tuple[Response, int]:
        """Says what it was sent, with the status that the path asks for."""
        if not is_echo_reachable() or status not in ECHO_STATUSES:
            raise HttpProblem(404, "there is no such path")
        said = jsonify(
            received=request.method,
            bytes=len(request.get_data()),
            idempotency_key=request.headers.get("Idempotency-Key", "")[:200],
        )
        return said, status


def is_echo_reachable() -> bool:
    """Whether the request came under a name of this machine, and callbacks may reach that."""
    return is_local_name() and services().guard.refusal("127.0.0.1") is None
