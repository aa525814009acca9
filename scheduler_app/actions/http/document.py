"""An HTTP action as MongoDB keeps it: `{type, url, method, headers: [[name, value]], body: {kind, data},
destination}`.

Secret are the query and the fragment of the URL, the values of headers that are not known to be harmless, and
the body.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler_app.actions.kind import Document
from scheduler_app.domain.field_types import Corrupt, fields, items, one_of, optional, text, wrong
from scheduler_app.domain.http_action import HTTP, METHODS, Body, BodyKind, HttpAction
from scheduler_app.domain.masking import is_secret, split_query

_BODY_KINDS = tuple(kind.value for kind in BodyKind)
_URL = "$action.url"

#: Only the URL up to its query, and the method, are left.
WITHOUT_SECRETS: Document = {
    "type": HTTP,
    "url": {
        "$cond": [
            {"$eq": [{"$type": _URL}, "string"]},
            {"$getField": {"field": "match", "input": {"$regexFind": {"input": _URL, "regex": "^[^?#]*"}}}},
            "",
        ]
    },
    "method": "$action.method",
    "headers": [],
    "destination": "$action.destination",
}


def to_document(action: HttpAction) -> Document:
    document: Document = {
        "type": HTTP,
        "url": action.url,
        "method": action.method,
        "headers": [[name, value] for name, value in action.headers],
        "body": None,
    }
    if action.body:
        document["body"] = {"kind": action.body.kind.value, "data": action.body.data}
    if action.destination is not None:
        document["destination"] = action.destination
    return document


def from_document(document: Mapping[str, Any]) -> HttpAction:
    """Raises Corrupt."""
    if "query" in document:
        raise Corrupt("action.query is empty, and sealed is missing or does not have it")
    body = document.get("body")
    destination = optional(text, document.get("destination"), "action.destination")
    return HttpAction(
        url=text(document.get("url"), "action.url"),
        destination=destination,
        method=one_of(
            document.get("method"), "action.method", METHODS if destination is None else (*METHODS, "")
        ),
        headers=tuple([_header(each) for each in items(document.get("headers"), "action.headers")]),
        body=None if body is None else _body(fields(body, "action.body")),
    )


def split(document: Document) -> tuple[Document, Document]:
    secrets: Document = {}
    url, query = split_query(document["url"])
    body = document.get("body")
    if query:
        secrets["query"] = query
    if values := [value for name, value in document["headers"] if is_secret(name)]:
        secrets["headers"] = values
    if body is not None:
        secrets["body"] = body["data"]
    if not secrets:
        return document, secrets
    hollow = document | {
        "url": url,
        "headers": [[name, None if is_secret(name) else value] for name, value in document["headers"]],
    }
    if query:
        hollow["query"] = None
    if body is not None:
        hollow["body"] = {"kind": body["kind"]}
    return hollow, secrets


def join(document: Document, secrets: Mapping[str, Any]) -> Document:
    """Raises Corrupt."""
    values = iter(items(secrets.get("headers", []), "sealed: headers"))
    pairs = (
        items(pair, "an item of action.headers") for pair in items(document.get("headers"), "action.headers")
    )
    joined = document | {"headers": [_pair(pair, values) for pair in pairs]}
    if any(True for _ in values):
        raise Corrupt("action.headers and what is sealed of them do not fit together")
    if "query" in secrets:
        joined["url"] = text(document.get("url"), "action.url") + text(secrets["query"], "sealed: query")
        joined.pop("query", None)
    if "body" in secrets:
        joined["body"] = fields(document.get("body"), "action.body") | {"data": secrets["body"]}
    return joined


def _pair(pair: list[Any], values: Iterator[Any]) -> list[Any]:
    return [pair[0], next(values, None)] if len(pair) == 2 and pair[1] is None else pair


def _header(pair: Any) -> tuple[str, str]:
    if len(items(pair, "an item of action.headers")) != 2:
        raise Corrupt("an item of action.headers is not a pair of a name and a value")
    return text(pair[0], "a name in action.headers"), text(pair[1], "a value in action.headers")


def _body(body: Mapping[str, Any]) -> Body:
    data = body.get("data")
    if not isinstance(data, bytes):
        raise wrong("action.body.data", data, "binary data")
    return Body(BodyKind(one_of(body.get("kind"), "action.body.kind", _BODY_KINDS)), data)
