"""The second half of the page of the API: the fields of a schedule, every route and every object.

The routes and objects are read from the specification, so they say what `/docs/openapi.yml` says.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from scheduler_app.api.factory import specification
from scheduler_app.api.routes.documentation import apply_schema
from scheduler_app.config import Settings
from scheduler_app.domain.resources.schedule import SCHEDULE as SCHEDULE_TABLE

Node = dict[str, Any]

#: What stands above it in the page is written by hand.
MARKER = "<!-- made from the code by `make docs`: edit nothing below this line -->"
METHODS = ("get", "post", "put", "patch", "delete")
#: A parameter of so many routes is explained once for all of them.
SHARED_BY = 3
SCHEDULE = "#fields-of-a-schedule"
#: Objects that are a schedule: the table of fields says what they hold.
GIVEN = ("NewSchedule", "ScheduleInput")
SHOWN = "ScheduleOutput"


def api_page(written: str) -> str:
    """The page, with everything below the marker made anew. Raises ValueError for a page without one."""
    prose, marker, _ = written.partition(MARKER)
    if not marker:
        raise ValueError(f"docs/api.md has no line {MARKER}")
    spec = specification(Settings())
    shared = _shared_parameters(spec)
    parts = [
        *_schedule_fields(),
        *_routes(spec, shared),
        *_parameters("## Parameters of several routes\n", shared.values()),
        *_objects(spec),
        *_problems(spec),
    ]
    return f"{prose}{MARKER}\n\n" + "\n".join(parts)


def file_schema() -> str:
    """The JSON schema of the files of `scheduler apply`, as the API serves it."""
    return json.dumps(apply_schema(specification(Settings())), indent=1, ensure_ascii=False) + "\n"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(' '.join(cell.replace('|', '&#124;').split()) for cell in row)} |"
    yield ""


def _schedule_fields() -> Iterator[str]:
    yield "## Fields of a schedule\n"
    yield from _table(
        ("field", "default", "meaning"),
        [(f"`{row.name}`", row.default or "", row.meaning) for row in SCHEDULE_TABLE if row.given],
    )
    yield "Answers show the fields above but `sealed`, with secrets masked, and besides:\n"
    yield from _table(
        ("field", "meaning"),
        [(f"`{row.name}`", row.meaning) for row in SCHEDULE_TABLE if not row.given],
    )


def _operations(spec: Node) -> Iterator[tuple[str, str, Node, list[Node]]]:
    """Method, path, operation and parameters of each."""
    for path, item in spec["paths"].items():
        for method in METHODS:
            if method in item:
                operation = item[method]
                given = (*item.get("parameters", ()), *operation["parameters"])
                yield method, path, operation, [_resolved(spec, each) for each in given]


def _shared_parameters(spec: Node) -> dict[str, Node]:
    """Those that mean the same on many routes, by name."""
    seen = Counter(repr(each) for *_, parameters in _operations(spec) for each in parameters)
    return {
        each["name"]: each
        for *_, parameters in _operations(spec)
        for each in parameters
        if seen[repr(each)] >= SHARED_BY
    }


def _parameters(heading: str, parameters: Iterable[Node]) -> Iterator[str]:
    yield heading
    yield from _table(
        ("parameter", "in", "type", "meaning"),
        [
            (f"`{each['name']}`", each["in"], _type(each["schema"]), each.get("description", ""))
            for each in parameters
        ],
    )


def _routes(spec: Node, shared: dict[str, Node]) -> Iterator[str]:
    yield "## Routes\n"
    yield from _table(
        ("route", "scope", "what it does"),
        [
            (
                f"[`{method.upper()} {path}`](#{_anchor(method, path)})",
                operation["x-scope"],
                operation["summary"],
            )
            for method, path, operation, _ in _operations(spec)
        ],
    )
    for method, path, operation, parameters in _operations(spec):
        own = [each for each in parameters if shared.get(each["name"]) != each]
        others = [f"`{each['name']}`" for each in parameters if shared.get(each["name"]) == each]
        yield f"### {method.upper()} {path}\n"
        yield f"{operation['summary']}.\n"
        if "description" in operation:
            yield f"{operation['description']}\n"
        if own:
            yield from _parameters("Parameters:\n", own)
        if others:
            yield f"[Parameters of several routes](#parameters-of-several-routes): {', '.join(others)}.\n"
        yield from _bodies(operation)


def _anchor(method: str, path: str) -> str:
    """The anchor of a route's heading."""
    return re.sub(r"[^\w\- ]", "", f"{method} {path}").replace(" ", "-")


def _bodies(operation: Node) -> Iterator[str]:
    if "requestBody" in operation:
        body = operation["requestBody"]
        optional = "" if body["required"] else " (may be left out)"
        yield f"Body: {_content(body)}{optional}.\n"
    answers, refusals = [], []
    for status, response in operation["responses"].items():
        if status.isdigit() and "$ref" not in response:
            answers.append(f"`{status}` {_content(response) or response['description']}")
        elif status.isdigit():
            refusals.append(f"`{status}`")
    yield f"Answers: {', '.join(answers)}. [Problems](#problems): {', '.join(refusals)}.\n"


def _content(holder: Node) -> str:
    """What a body or an answer holds, by its media types."""
    found = holder.get("content", {})
    return ", ".join(
        _type(media["schema"]) if kind.endswith("json") and "$ref" in media["schema"] else f"`{kind}`"
        for kind, media in found.items()
    )


def _objects(spec: Node) -> Iterator[str]:
    schemas = spec["components"]["schemas"]
    used = set(_references(spec["paths"]))
    while more := {name for each in used for name in _references(schemas[each])} - used:
        used |= more
    used.add("Problem")
    used |= set(_references(schemas["Problem"]))
    yield "## Objects\n"
    for name in sorted(used):
        yield f"### {name}\n"
        yield from _object(name, schemas)


def _object(name: str, schemas: Node) -> Iterator[str]:
    schema = schemas[name]
    if "oneOf" in schema:
        yield f"By its `{schema['discriminator']['propertyName']}`: {_type(schema)}.\n"
        return
    properties, required = schema["properties"], schema.get("required", ())
    if name in GIVEN:
        needed = ", ".join(f"`{each}`" for each in required) or "none"
        yield f"[The fields of a schedule]({SCHEDULE}) that a request may give; required: {needed}.\n"
        return
    if properties.keys() >= schemas[SHOWN]["properties"].keys():
        yield f"[The fields of a schedule]({SCHEDULE}) that answers show.\n"
        properties = {
            each: properties[each] for each in properties if each not in schemas[SHOWN]["properties"]
        }
    if not properties:
        return
    yield from _table(
        ("field", "type", "meaning"),
        [
            (
                f"`{each}`{' (required)' if each in required else ''}",
                _type(field),
                field.get("description", ""),
            )
            for each, field in properties.items()
        ],
    )


def _problems(spec: Node) -> Iterator[str]:
    yield "## Problems\n"
    responses = {
        each["$ref"]: status
        for _, _, operation, _ in _operations(spec)
        for status, each in operation["responses"].items()
        if "$ref" in each and status.isdigit()
    }
    yield from _table(
        ("status", "when"),
        [
            (f"`{status}`", _resolved(spec, {"$ref": reference})["description"])
            for reference, status in sorted(responses.items(), key=lambda pair: pair[1])
        ],
    )


def _resolved(spec: Node, node: Node) -> Node:
    if "$ref" not in node:
        return node
    found: Any = spec
    for step in node["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    return found  # type: ignore[no-any-return]


def _references(node: Any) -> Iterator[str]:
    """The names of the schemas that a part of the specification refers to."""
    if isinstance(node, dict):
        reference = node.get("$ref", "")
        if isinstance(reference, str) and reference.startswith("#/components/schemas/"):
            yield reference.rsplit("/", 1)[-1]
        for child in node.values():
            yield from _references(child)
    elif isinstance(node, list):
        for child in node:
            yield from _references(child)


def _type(schema: Node) -> str:
    """A schema in a few words: its type, words or bounds, and its default."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if alternatives := schema.get("anyOf") or ("discriminator" in schema and schema["oneOf"]):
        return " or ".join(_type(each) for each in alternatives)
    kinds = schema.get("type", "any value")
    text = " or ".join(kinds) if isinstance(kinds, list) else kinds
    if "items" in schema:
        text = f"list of {_type(schema['items'])}"
    if "enum" in schema:
        text = ", ".join(f"`{each}`" for each in schema["enum"] if each)
    if schema.get("format") == "date-time":
        text = "instant"
    if "minimum" in schema and "maximum" in schema:
        text += f", {_number(schema['minimum'])}–{_number(schema['maximum'])}"
    if "default" in schema:
        default = schema["default"]
        text += f", default `{str(default).lower() if isinstance(default, bool) else default}`"
    return text


def _number(value: float) -> str:
    """A bound: whole numbers in full, with commas between the thousands."""
    return f"{int(value):,}" if value == int(value) else f"{value:g}"
