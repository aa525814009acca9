"""The specification, and Swagger UI with all its assets: a browser asks no other host for anything."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flask_swagger_ui
import yaml
from flask import Flask, Response, redirect, send_from_directory
from flask_smorest import Api
from werkzeug import Response as AnyResponse

from scheduler_app.api.apply_schema import apply_schema
from scheduler_app.api.openapi import Node, completed

#: The files of swagger-ui-dist in the package; its Flask blueprint is not used.
ASSETS = Path(flask_swagger_ui.__file__).parent / "dist"
SERVED = ("swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png")

#: Scripts only from this host and none inline. Swagger UI needs inline styles and `data:` images.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>RRule Scheduler</title>
<link rel="icon" type="image/png" href="/swagger-ui/favicon-32x32.png">
<link rel="stylesheet" href="/swagger-ui/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/swagger-ui/swagger-ui-bundle.js"></script>
<script src="/swagger-ui/start.js"></script>
</body>
</html>
"""

START = """SwaggerUIBundle({
  url: "/docs/openapi.yml",
  dom_id: "#swagger-ui",
  deepLinking: true,
  // The validator's badge would send the specification to another host.
  validatorUrl: null,
});
"""


class _Plain(yaml.SafeDumper):
    """Writes no anchors: not every YAML reader of a client generator understands them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def register(app: Flask, api: Api) -> None:
    made: dict[str, str] = {}
    being_made = threading.Lock()

    def once(name: str, make: Callable[[Node], str]) -> str:
        """What `make` makes of the specification at the first request: by then every route is registered, and
        it does not change. It takes half a second of Python's lock, and if all threads made it together, no
        other request would be answered meanwhile."""
        with being_made:
            if name not in made:
                made[name] = make(completed(api.spec.to_dict()))
            return made[name]

    @app.get("/docs/openapi.yml")
    def specification() -> Response:
        return Response(once("yaml", _as_yaml), mimetype="application/yaml")

    @app.get("/docs/apply.schema.json")
    def schema_of_files() -> Response:
        """Of the files of `scheduler apply`."""
        return Response(once("schema", _as_schema_of_files), mimetype="application/schema+json")

    @app.get("/swagger-ui")
    @app.get("/swagger-ui/")
    def swagger_ui() -> Response:
        return Response(PAGE, mimetype="text/html", headers={"Content-Security-Policy": POLICY})

    @app.get("/swagger/index.html")
    def swagger_ui_of_the_seed() -> AnyResponse:
        """Where task_scheduler has it."""
        return redirect("/swagger-ui", code=308)

    @app.get("/swagger-ui/start.js")
    def swagger_ui_start() -> Response:
        return Response(START, mimetype="text/javascript")

    @app.get(f"/swagger-ui/<any({', '.join(repr(name) for name in SERVED)}):name>")
    def swagger_ui_asset(name: str) -> Response:
        return send_from_directory(ASSETS, name, max_age=3600)

    @app.after_request
    def harden(response: Response) -> Response:
        """Forbids browsers to guess another content type than the one declared."""
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        return response


def _as_yaml(specification: Node) -> str:
    made: str = yaml.dump(specification, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110)
    return made


def _as_schema_of_files(specification: Node) -> str:
    return json.dumps(apply_schema(specification), ensure_ascii=False) + "\n"
