"""`/health` and `/readyz`: whether this process answers, and whether callbacks can be made."""

from flask import Flask, Response, jsonify

from scheduler_app.api.json_types import View
from scheduler_app.api.services import Services, services
from scheduler_app.health.ready import check_ready


def register(app: Flask) -> None:
    @app.get("/health")
    @app.get("/healthz")
    def health() -> Response:
        """This process answers."""
        return jsonify(status="ok")

    @app.get("/readyz")
    def ready() -> tuple[Response, int]:
        """Says whether everything that a callback needs is there, and what is missing."""
        checks = _checks(services())
        fine = all(check["ok"] for check in checks.values())
        return jsonify(status="ready" if fine else "not ready", checks=checks), 200 if fine else 503


def _checks(made: Services) -> dict[str, View]:
    checks = {}
    for check in check_ready(made.store, made.publisher):
        checks[check.name] = {"ok": check.ok, **check.facts}
        if check.remedy or not check.ok:
            word = "warning" if check.ok else "detail"
            checks[check.name][word] = f"{check.found}; {check.remedy}".removesuffix("; ")
    return checks
