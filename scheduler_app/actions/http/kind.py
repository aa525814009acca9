"""The row of HTTP callbacks in the registry of actions, and an HTTP action as MongoDB keeps it: `{type, url,
method, headers: [[name, value]], body: {kind, data}, destination}`.

Secret are the query and the fragment of the URL, the values of headers that are not known to be harmless, and
the body.
"""

import ssl
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from scheduler_app.actions.http.guard import Guard, check_reachable, guard_of
from scheduler_app.actions.kind import ActionKind, Document, Executor
from scheduler_app.config import InvalidSetting, Settings
from scheduler_app.domain.http_action import HTTP, METHODS, BodyKind, HttpAction, RequestBody
from scheduler_app.domain.masking import is_secret, split_query
from scheduler_app.domain.stored_fields import Corrupt, fields, items, one_of, optional, text, wrong

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


def document_of(action: HttpAction) -> Document:
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


def action_of(document: Mapping[str, Any]) -> HttpAction:
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


def split_secrets(document: Document) -> tuple[Document, Document]:
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


def join_secrets(document: Document, secrets: Mapping[str, Any]) -> Document:
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


def _body(body: Mapping[str, Any]) -> RequestBody:
    data = body.get("data")
    if not isinstance(data, bytes):
        raise wrong("action.body.data", data, "binary data")
    return RequestBody(BodyKind(one_of(body.get("kind"), "action.body.kind", _BODY_KINDS)), data)


class HttpKind(ActionKind[HttpAction]):
    """A request to a URL. Its isolation key is the receiver's origin; a status says how it went."""

    name = HTTP
    without_secrets = WITHOUT_SECRETS
    not_for_beats = ("headers", "body", "query")
    in_their_place: ClassVar[Document] = {"headers": [], "body": None}

    def fields(self) -> None:
        return None

    def to_document(self, action: HttpAction) -> Document:
        return document_of(action)

    def from_document(self, stored: Mapping[str, Any]) -> HttpAction:
        return action_of(stored)

    def split(self, stored: Document) -> tuple[Document, Document]:
        return split_secrets(stored)

    def join(self, stored: Document, secrets: Mapping[str, Any]) -> Document:
        return join_secrets(stored, secrets)

    def checker(self, settings: Settings) -> Callable[[HttpAction], None]:
        """What is returned raises InvalidField("callback_url") for an address that the guard refuses."""
        return partial(_check, guard=guard_of(settings))

    def executor(self, settings: Settings, ready: Callable[[], None]) -> Executor:
        """`ready` is not used: requests make progress in the courier's thread alone."""
        from scheduler_app.actions.http.executor import HttpExecutor
        from scheduler_app.actions.http.sender import Sender

        check_ca_bundle(settings.callback_ca_bundle)
        sender = Sender(guard_of(settings), ca_bundle=settings.callback_ca_bundle or None)
        return HttpExecutor(sender, concurrency=settings.callback_origin_concurrency)


def _check(action: HttpAction, guard: Guard) -> None:
    if action.destination is None:
        check_reachable(action.url, guard)


def check_ca_bundle(path: str) -> None:
    """Raises InvalidSetting if CALLBACK_CA_BUNDLE is set and is not a file of certificates."""
    if not path:
        return
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:  # ssl.SSLError is one, too
        raise InvalidSetting(
            f"CALLBACK_CA_BUNDLE {path} cannot be read as certificates ({error.strerror or error});"
            " give a PEM file that this user may read, or none for certifi's"
        ) from None
