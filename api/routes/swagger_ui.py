"""The specification, and Swagger UI with all its assets: a browser asks no other host for anything."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import flask_swagger_ui
import yaml
from flask import Flask, Response, send_from_directory
from flask_smorest import Api

from api.apply_schema import apply_schema
from api.openapi import Node, completed

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

    @cache
    def specified() -> Node:
        """Made at the first request: by then every route is registered, and it does not change."""
        return completed(api.spec.to_dict())

    @app.get("/docs/openapi.yml")
    def specification() -> Response:
        if "yaml" not in made:
            made["yaml"] = yaml.dump(
                specified(), Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110
            )
        return Response(made["yaml"], mimetype="application/yaml")

    @app.get("/docs/apply.schema.json")
    def schema_of_files() -> Response:
        """Of the files of `scheduler apply`."""
        if "schema" not in made:
            made["schema"] = json.dumps(apply_schema(specified()), ensure_ascii=False) + "\n"
        return Response(made["schema"], mimetype="application/schema+json")

    @app.get("/swagger-ui")
    @app.get("/swagger-ui/")
    def swagger_ui() -> Response:
        return Response(PAGE, mimetype="text/html", headers={"Content-Security-Policy": POLICY})

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
