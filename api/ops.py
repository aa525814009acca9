"""What operators and their tools ask: health, readiness, the specification."""

from typing import Any

import yaml
from flask import Flask, Response, jsonify
from flask_smorest import Api

from api.services import Services, services
from scheduler_app.clock import WARN_OFFSET_SECONDS
from scheduler_app.store import STORE_FAULTS

NEEDED_ROLES = ("beat", "worker")


def register(app: Flask, api: Api) -> None:
    @app.get("/health")
    @app.get("/healthz")
    def health() -> Response:
        """This process answers."""
        return jsonify(status="ok")

    @app.get("/readyz")
    def ready() -> tuple[Response, int]:
        """Everything that a callback needs is there; if not, what is missing."""
        checks = _checks(services())
        fine = all(check["ok"] for check in checks.values())
        return jsonify(status="ready" if fine else "not ready", checks=checks), 200 if fine else 503

    @app.get("/docs/openapi.yml")
    def specification() -> Response:
        text = yaml.safe_dump(api.spec.to_dict(), sort_keys=False, allow_unicode=True, width=110)
        return Response(text, mimetype="application/yaml")


def _checks(made: Services) -> dict[str, dict[str, Any]]:
    checks: dict[str, dict[str, Any]] = {}
    try:
        nodes = made.store.nodes.alive()
        checks["mongodb"] = {"ok": True}
    except STORE_FAULTS as error:
        nodes = []
        checks["mongodb"] = {"ok": False, "detail": f"does not answer: {type(error).__name__}"}
    try:
        checks["broker"] = {"ok": True, "queue_length": made.publisher.queue_length()}
    except made.publisher.unavailable as error:
        checks["broker"] = {"ok": False, "detail": f"does not answer: {type(error).__name__}"}
    for role in NEEDED_ROLES:
        alive = [node for node in nodes if node["role"] == role]
        checks[role] = {"ok": bool(alive), "alive": len(alive)}
        if not alive:
            checks[role]["detail"] = f"no {role} has reported; start one: celery -A scheduler_app {role}"
    off = [node for node in nodes if abs(node.get("clock_offset_seconds", 0)) > WARN_OFFSET_SECONDS]
    checks["clocks"] = {"ok": not off}
    if off:
        checks["clocks"]["detail"] = "off mongod's clock: " + ", ".join(
            f"{node['role']} {node['_id']} by {node['clock_offset_seconds']:.1f} s" for node in off
        )
    return checks
