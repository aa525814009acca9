"""The specification, Swagger UI, the JSON schema of the files of `scheduler apply`, and the manual as a site.

A browser asks no other host for anything. Every package of a release has the manual, and `make docs` builds
it in a clone.
"""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import flask_swagger_ui
import yaml
from flask import Flask, Response, redirect, request, send_from_directory
from flask_smorest import Api
from werkzeug import Response as AnyResponse

from scheduler_app.api.blueprint import accepting_anything
from scheduler_app.api.openapi import Node, complete_specification
from scheduler_app.domain.errors import NotFound

#: By the top-level key of a file: the schema of a request, and the field that names an item.
_ITEMS = {
    "calendars": ("CalendarInput", "name", "^[a-zA-Z0-9._-]{1,64}$"),
    "destinations": ("DestinationInput", "name", "^[a-zA-Z0-9-]{1,64}$"),
    "blackouts": ("BlackoutInput", "name", "^[a-zA-Z0-9._-]{1,64}$"),
    "notifications": ("NotificationInput", "name", "^[a-zA-Z0-9-]{1,64}$"),
    "schedules": ("NewSchedule", "id", "^[a-zA-Z0-9-]{1,64}$"),
}
_REFERENCE = "#/components/schemas/"


def apply_schema(specification: Node) -> Node:
    """The schema; the specification stays as it is."""
    schemas = specification["components"]["schemas"]
    definitions: Node = {}
    for name, key, pattern in _ITEMS.values():
        given = _moved_references(schemas[name])
        known = {key: {"type": "string", "pattern": pattern, "description": "By which it is known again"}}
        required = list(dict.fromkeys([key, *given.get("required", ())]))
        definitions[name] = given | {"properties": known | given["properties"], "required": required}
        for other in _named(schemas[name], schemas):
            definitions.setdefault(other, _moved_references(schemas[other]))
    lists = {
        kind: {"type": "array", "items": {"$ref": f"#/$defs/{name}"}} for kind, (name, *_) in _ITEMS.items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Files of scheduler apply",
        "type": "object",
        "properties": lists,
        "additionalProperties": False,
        "$defs": definitions,
    }


def _moved_references(node: Any) -> Any:
    """A copy whose references are to the schema's own definitions."""
    if isinstance(node, list):
        return [_moved_references(each) for each in node]
    if isinstance(node, dict):
        return {name: _moved_references(value) for name, value in node.items()}
    if isinstance(node, str) and node.startswith(_REFERENCE):
        return f"#/$defs/{node.removeprefix(_REFERENCE)}"
    return node


def _named(node: Any, schemas: Node, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """The schemas that one refers to, and those that they refer to."""
    if isinstance(node, list):
        for each in node:
            yield from _named(each, schemas, seen)
    elif isinstance(node, dict):
        name = str(node.get("$ref", "")).removeprefix(_REFERENCE)
        if name and name not in seen:
            yield name
            yield from _named(schemas[name], schemas, seen | {name})
        for value in node.values():
            yield from _named(value, schemas, seen)


#: The files of swagger-ui-dist in the package; its Flask blueprint is not used.
ASSETS = Path(flask_swagger_ui.__file__).parent / "dist"
SERVED = ("swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png")

#: Scripts only from this host and none inline. Swagger UI needs inline styles and `data:` images.
SWAGGER_UI_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

SWAGGER_UI_PAGE = """<!DOCTYPE html>
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

SWAGGER_UI_START = """SwaggerUIBundle({
  url: "/docs/openapi.yml",
  dom_id: "#swagger-ui",
  deepLinking: true,
  // The validator's badge would send the specification to another host.
  validatorUrl: null,
});
"""


class _Plain(yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper):  # type: ignore[misc]
    """Writes no anchors: not every YAML reader of a client generator understands them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def register_swagger_ui(app: Flask, api: Api) -> None:
    made: dict[str, str] = {}
    being_made = threading.Lock()

    def once(name: str, make: Callable[[Node], str]) -> str:
        """What `make` makes of the specification at the first request: by then every route is registered, and
        it does not change. It takes a third of a second of Python's lock, and if all threads made it
        together, no other request would be answered meanwhile."""
        with being_made:
            if name not in made:
                made[name] = make(complete_specification(api.spec.to_dict()))
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
        return Response(
            SWAGGER_UI_PAGE, mimetype="text/html", headers={"Content-Security-Policy": SWAGGER_UI_POLICY}
        )

    @app.get("/swagger/index.html")
    def swagger_ui_of_the_seed() -> AnyResponse:
        """Where task_scheduler has it."""
        return redirect("/swagger-ui", code=308)

    @app.get("/swagger-ui/start.js")
    def swagger_ui_start() -> Response:
        return Response(SWAGGER_UI_START, mimetype="text/javascript")

    @app.get(f"/swagger-ui/<any({', '.join(repr(name) for name in SERVED)}):name>")
    def swagger_ui_asset(name: str) -> Response:
        return send_from_directory(ASSETS, name, max_age=3600)


def _as_yaml(specification: Node) -> str:
    made: str = yaml.dump(specification, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110)
    return made


def _as_schema_of_files(specification: Node) -> str:
    return json.dumps(apply_schema(specification), ensure_ascii=False) + "\n"


MANUAL_FOLDER = Path(__file__).parents[1] / "manual"

#: The pages hold a few lines of inline script (the choice of light or dark) and load from this host only.
MANUAL_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'none'"
)

#: What a person sees in a clone without it.
NO_MANUAL = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The manual is not built here · RRule Scheduler</title>
<link rel="stylesheet" href="/assets/page.css">
</head>
<body>
<main class="solo"><div class="card stack">
<h1>The manual is not built here</h1>
<p>Every release has it. In a clone <code>make docs</code> builds it, and it is here at once.
Its texts are the files in <code>docs</code>.</p>
<p><a href="/">Back to the overview</a></p>
</div></main>
</body>
</html>
"""


def register_manual(app: Flask, folder: Path = MANUAL_FOLDER) -> None:
    """Serves the pages of `folder` under /docs/."""

    @app.get("/docs/", defaults={"name": "index.html"})
    @app.get("/docs/<path:name>")
    @accepting_anything
    def manual(name: str) -> Response:
        """A file of the manual. Its pages ask for others with `?v=`, and for what was found with `?q=`."""
        if not (folder / "index.html").is_file():
            if "text/html" in request.headers.get("Accept", "") and name.endswith(".html"):
                policy = {"Content-Security-Policy": MANUAL_POLICY}
                return Response(NO_MANUAL, status=404, mimetype="text/html", headers=policy)
            raise NotFound("the manual is not built here; `make docs` builds it")
        page = send_from_directory(folder, name, max_age=3600)
        page.headers["Content-Security-Policy"] = MANUAL_POLICY
        return page
