"""The JSON schema of the files of `scheduler apply`, made of the specification's schemas of requests."""

from collections.abc import Iterator
from typing import Any

from scheduler_app.api.openapi import Node

#: By the top-level key of a file: the schema of a request, and the field that names an item.
_ITEMS = {
    "calendars": ("CalendarInput", "name", "^[a-zA-Z0-9._-]{1,64}$"),
    "destinations": ("DestinationInput", "name", "^[a-zA-Z0-9-]{1,64}$"),
    "blackouts": ("BlackoutInput", "name", "^[a-zA-Z0-9._-]{1,64}$"),
    "schedules": ("NewSchedule", "id", "^[a-zA-Z0-9-]{1,64}$"),
}
_REFERENCE = "#/components/schemas/"


def apply_schema(specification: Node) -> Node:
    """The schema; the specification stays as it is."""
    schemas = specification["components"]["schemas"]
    definitions: Node = {}
    for name, key, pattern in _ITEMS.values():
        given = _moved(schemas[name])
        known = {key: {"type": "string", "pattern": pattern, "description": "By which it is known again"}}
        required = list(dict.fromkeys([key, *given.get("required", ())]))
        definitions[name] = given | {"properties": known | given["properties"], "required": required}
        for other in _named(schemas[name], schemas):
            definitions.setdefault(other, _moved(schemas[other]))
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


def _moved(node: Any) -> Any:
    """A copy whose references are to the schema's own definitions."""
    if isinstance(node, list):
        return [_moved(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        name: f"#/$defs/{value.removeprefix(_REFERENCE)}" if name == "$ref" else _moved(value)
        for name, value in node.items()
    }


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
