"""The OpenAPI specification: its settings, and what all operations share.

Routes describe themselves. `complete_specification` adds the problems that an operation may be refused
with, which follow from what it takes, and the headers that many operations share. Errors of /tasks have a
form of their own.
"""

from collections.abc import Iterator
from typing import Any

from scheduler_app.api.idempotency import HEADER, REPLAYED
from scheduler_app.api.problems import PROBLEM_JSON, TASKS_PREFIX, task_error_status
from scheduler_app.api.request_limits import HOPS_HEADER as HOPS
from scheduler_app.api.request_limits import MAX_HOPS
from scheduler_app.api.versions import mark_deprecated
from scheduler_app.api.wire.action import TaggedUnion
from scheduler_app.config import Settings
from scheduler_app.version import __version__

Node = dict[str, Any]

TASKS = TASKS_PREFIX
_ERROR: Node = {"application/json": {"schema": {"$ref": "#/components/schemas/TaskError"}}}
_OFF = "There is no such task, or TASKS_API is not true"


def describe_task_errors(operation: Node) -> None:
    """Replaces the problems among an operation's answers."""
    answers = {
        status: answer for status, answer in operation["responses"].items() if str(status).startswith("2")
    }
    for status in sorted({task_error_status(int(each)) for each in operation["responses"]} | {404}):
        if status >= 400:
            said = _OFF if status == 404 else "Refused: `error` says why"
            answers[str(status)] = {"description": said, "content": _ERROR}
    operation["responses"] = answers


PROBLEM = {"$ref": "#/components/schemas/Problem"}

#: By status: the name among the components, and when it is answered.
PROBLEMS = {
    400: ("BadRequest", "The body is not well-formed JSON, or the request not well-formed HTTP"),
    401: ("Unauthorized", "API_KEYS is set, and the request has none of them"),
    403: (
        "Forbidden",
        "From another origin; without API_KEYS from beyond localhost; a wrong token; or `limit` is reached",
    ),
    404: ("NotFound", "Nothing has this id, or it was deleted"),
    409: (
        "Conflict",
        "Its state does not allow this, or a request with this Idempotency-Key is still being answered",
    ),
    412: ("PreconditionFailed", "It is not at the version that If-Match names, or exists where it must not"),
    413: (
        "ContentTooLarge",
        "The body is larger than 1 MiB (bulk: 16 MiB, import: 8 MiB), or holds too many values",
    ),
    415: ("UnsupportedMediaType", "The body is not application/json"),
    422: ("UnprocessableContent", "A field or parameter is not usable; `errors` names it"),
    429: (
        "TooManyRequests",
        "Many wrong keys came from this address, this key asks for more than its share, or a quota is full",
    ),
    500: ("InternalServerError", "The server failed; the reason is in its log"),
    503: (
        "ServiceUnavailable",
        "The database does not answer, or still builds an index; try again after Retry-After",
    ),
    508: (
        "LoopDetected",
        f"{HOPS} exceeds {MAX_HOPS}: callbacks of the scheduler trigger each other in a loop",
    ),
}
RETRY_AFTER = {"Retry-After": {"description": "Seconds", "schema": {"type": "integer"}}}
EXTRA_HEADERS: dict[int, Node] = {
    401: {"WWW-Authenticate": {"description": "`Bearer`", "schema": {"type": "string"}}},
    409: RETRY_AFTER,
    429: RETRY_AFTER,
    503: RETRY_AFTER,
}

#: Operations that answer with an ETag, and those that take If-Match.
TAGGED = {
    *("create_schedule", "get_schedule", "update_schedule", "pause_schedule", "resume_schedule"),
    *("get_calendar", "put_calendar", "get_destination", "put_destination", "change_destination"),
    *("pause_destination", "resume_destination"),
}
CONDITIONAL = {
    "update_schedule",
    "delete_schedule",
    "pause_schedule",
    "resume_schedule",
    "make_signing_secret",
    "remove_signing_secret",
    *("put_calendar", "delete_calendar"),
    *("put_destination", "change_destination", "delete_destination"),
    *("pause_destination", "resume_destination"),
}
#: Operations of receivers, which show the token of their callback.
COMPLETION_OPERATIONS = {"complete_event", "fail_event"}
#: What operations without an id in their paths may answer all the same.
MORE_STATUSES = {"turn_kill_switch_on": {409}, "turn_kill_switch_off": {404}}
#: Operations that answer 304 to the ETag of a copy that is current.
CACHEABLE = {"get_schedule", "get_calendar", "get_destination"}

ETAG = {"ETag": {"description": "Its version, for If-Match", "schema": {"type": "string"}}}
REPLAY = {
    REPLAYED: {
        "description": f"`true` where this is the answer that an earlier request with this {HEADER} had",
        "schema": {"type": "string"},
    }
}
#: They have no examples: Swagger UI would send these with every request that a reader tries out, and a second
#: creation with the same Idempotency-Key creates nothing.
PARAMETERS = {
    "IdempotencyKey": {
        "name": HEADER,
        "in": "header",
        "description": "A name of your own for this request, kept for a day. A request that is sent again is"
        " executed once and answered the same; with another body it is answered 422, and 409 while the"
        " first is in progress.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    },
    "CompletionToken": {
        "name": "X-Scheduler-Completion-Token",
        "in": "header",
        "description": "What the event's callback carried in the header of this name; no API key is needed",
        "schema": {"type": "string"},
    },
    "IfMatch": {
        "name": "If-Match",
        "in": "header",
        "description": "The ETag under which it was read: if it was edited since, nothing is done",
        "schema": {"type": "string"},
    },
    "IfNoneMatch": {
        "name": "If-None-Match",
        "in": "header",
        "description": "The ETag of the copy you have: if it is current, the answer is a 304 without a body",
        "schema": {"type": "string"},
    },
}
#: The operations whose answers hold an id, the parameter that takes it, and where it is in the answer.
LINKED = {
    "create_schedule": ("schedule_id", "$response.body#/id"),
    "schedule_message": ("message_id", "$response.body#/id"),
    "trigger_schedule": ("event_id", "$response.body#/event_id"),
}
PATH_PARAMETERS = {
    "schedule_id": ("The schedule's id", "6b010264e9357beda3998488"),
    "feed_id": ("The feed's id", "6b010264e9357beda3998488"),
    "message_id": ("The message's id", "order-4711-reminder"),
    "task_id": ("The task's id", "my-task-1"),
    "event_id": ("The event's id", "6b010264e9357beda3998488-1-20250105T120000Z"),
    "name": ("The destination's or calendar's name", "zurich"),
    "key_id": ("The key's id", "4k2m9x0p7q1z"),
    "deletion_id": ("The deletion's id", "4k2m9x0p7q1z"),
    "person_id": ("The person's id", "3f0c9a52d1b7e86640aa91d2"),
    "redrive_id": ("The redrive's id", "9a1c2b3d4e5f6071"),
    "failure_id": ("The failure's id", "7a849b57fa656643-20261124T145129144Z"),
    "edit_id": ("The id of an edit, as the list of edits shows it", "5f2b8c3de4b0a1c2d3e4f5a6"),
}


def spec_options(settings: Settings) -> Node:
    """flask-smorest's configuration."""
    security: list[Node] = [{"bearer": []}, {"key": []}]
    return {
        "API_TITLE": "RRule Scheduler",
        "API_VERSION": __version__,
        "OPENAPI_VERSION": "3.1.0",
        "API_SPEC_OPTIONS": {
            "info": {
                "description": "HTTP callbacks at every occurrence of an RFC 5545 rule.",
                "license": {"name": "MIT", "identifier": "MIT"},
            },
            "servers": [{"url": "/", "description": "Where this was read"}],
            "components": {
                "securitySchemes": {
                    "bearer": {"type": "http", "scheme": "bearer", "description": "One of API_KEYS"},
                    "key": {
                        "type": "apiKey",
                        "in": "header",
                        "name": "X-API-Key",
                        "description": "One of API_KEYS",
                    },
                }
            },
            "security": security if settings.needs_key else [*security, {}],
        },
    }


def complete_specification(spec: Node) -> Node:
    """The specification `spec` with what all operations share; changes `spec` itself."""
    components = spec["components"]
    # Added by flask-smorest; no operation here refers to it.
    components["schemas"].pop("PaginationMetadata", None)
    components["responses"] = {name: _problem(status) for status, (name, _) in PROBLEMS.items()}
    components["parameters"] = PARAMETERS
    links = _links(spec["paths"])
    for path, item in spec["paths"].items():
        for parameter in item.get("parameters", []):
            description, example = PATH_PARAMETERS[parameter["name"]]
            parameter |= {"description": description, "example": example}
        for method, operation in item.items():
            if isinstance(operation, dict):
                _complete(operation, method, in_path="{" in path)
                mark_deprecated(operation, components["schemas"])
                if path.startswith(TASKS):
                    describe_task_errors(operation)
                for response in operation["responses"].values():
                    if operation["operationId"] in links and "$ref" not in response:
                        response["links"] = links[operation["operationId"]]
    for schema in _schemas(components["schemas"]):
        _fix_schema(schema)
    return spec


def _links(paths: Node) -> dict[str, Node]:
    """For each operation in `LINKED` the operations that take the id in its answer."""
    return {
        maker: {
            operation["operationId"]: {
                "operationId": operation["operationId"],
                "parameters": {name: expression},
            }
            for path, item in paths.items()
            if f"{{{name}}}" in path
            for operation in item.values()
            if isinstance(operation, dict)
        }
        for maker, (name, expression) in LINKED.items()
    }


def _complete(operation: Node, method: str, *, in_path: bool) -> None:
    name = operation["operationId"]
    parameters = operation.setdefault("parameters", [])
    # An unknown query parameter is answered 422 everywhere.
    statuses = {401, 403, 422, 429, 500, 503}
    if in_path:
        statuses |= {404, 409}
    if "requestBody" in operation:
        operation["requestBody"].setdefault("required", True)
    headers: Node = {}
    if method != "get":
        # A body is read even where none is taken, and a malformed X-Scheduler-Hops is answered 400.
        statuses |= {400, 413, 415, 508}
    if method == "post":
        parameters.append({"$ref": "#/components/parameters/IdempotencyKey"})
        statuses.add(409)
        headers |= REPLAY
    if name in CONDITIONAL:
        parameters.append({"$ref": "#/components/parameters/IfMatch"})
        statuses.add(412)
    if name in COMPLETION_OPERATIONS:
        parameters.append({"$ref": "#/components/parameters/CompletionToken"})
    statuses |= MORE_STATUSES.get(name, set())
    if name in TAGGED:
        headers |= ETAG
    responses = {
        status: response | ({"headers": headers} if headers else {})
        for status, response in operation["responses"].items()
        if str(status).startswith("2")
    }
    if name in CACHEABLE:
        parameters.append({"$ref": "#/components/parameters/IfNoneMatch"})
        responses["304"] = {"description": "The copy you have is current", "headers": ETAG}
    responses |= {
        str(status): {"$ref": f"#/components/responses/{PROBLEMS[status][0]}"} for status in sorted(statuses)
    }
    operation["responses"] = responses


def _problem(status: int) -> Node:
    answer: Node = {"description": PROBLEMS[status][1], "content": {PROBLEM_JSON: {"schema": PROBLEM}}}
    return answer | ({"headers": EXTRA_HEADERS[status]} if status in EXTRA_HEADERS else {})


def tagged_union(converter: Any, field: object, **_: Any) -> Node:
    """Describes a field that holds an object of one of several schemas: for apispec, whose converter has no
    types."""
    if not isinstance(field, TaggedUnion):
        return {}
    references = {name: converter.resolve_nested_schema(schema) for name, schema in field.schemas.items()}
    if field.component not in converter.spec.components.schemas:
        mapping = {name: reference["$ref"] for name, reference in references.items()}
        union = {
            "oneOf": list(references.values()),
            "discriminator": {"propertyName": "type", "mapping": mapping},
        }
        converter.spec.components.schema(field.component, union)
    return {"$ref": f"#/components/schemas/{field.component}"}


def _schemas(node: Any) -> Iterator[Node]:
    if isinstance(node, dict):
        yield node
        for child in node.values():
            yield from _schemas(child)


def _fix_schema(schema: Node) -> None:
    """Corrects apispec, which bounds an object by the keyword for strings."""
    if schema.get("type") == "object" and "maxLength" in schema:
        schema["maxProperties"] = schema.pop("maxLength")
