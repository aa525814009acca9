"""The row of HTTP callbacks in the registry of actions, and an HTTP action as MongoDB keeps it: `{type, url,
method, headers: [[name, value]], body: {kind, data}, destination}`.

Secret are the query and the fragment of the URL, the values of headers that are not known to be harmless, and
the body.
"""

import ssl
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from scheduler_app.actions.http.guard import Guard, check_reachable, guard_of
from scheduler_app.actions.kind import ActionKind, Document, Executor, joined_values
from scheduler_app.config import InvalidSetting, Settings
from scheduler_app.domain.http_action import HTTP, METHODS, BodyKind, HttpAction, RequestBody
from scheduler_app.domain.masking import is_secret, split_query
from scheduler_app.domain.stored_fields import Corrupt, fields, one_of, optional, pairs, text, wrong

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


class HttpKind(ActionKind[HttpAction]):
    """A request to a URL. Its isolation key is the receiver's origin; a status says how it went."""

    name = HTTP
    without_secrets = WITHOUT_SECRETS
    not_for_beats = ("headers", "body", "query")
    in_their_place: ClassVar[Document] = {"headers": [], "body": None}

    def fields(self) -> None:
        return None

    def to_document(self, action: HttpAction) -> Document:
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

    def from_document(self, stored: Mapping[str, Any]) -> HttpAction:
        if "query" in stored:
            raise Corrupt("action.query is empty, and sealed is missing or does not have it")
        destination = optional(text, stored.get("destination"), "action.destination")
        methods = METHODS if destination is None else (*METHODS, "")
        return HttpAction(
            url=text(stored.get("url"), "action.url"),
            destination=destination,
            method=one_of(stored.get("method"), "action.method", methods),
            headers=pairs(stored.get("headers"), "action.headers"),
            body=optional(_body, stored.get("body"), "action.body"),
        )

    def split(self, stored: Document) -> tuple[Document, Document]:
        secrets: Document = {}
        url, query = split_query(stored["url"])
        body = stored.get("body")
        if query:
            secrets["query"] = query
        if values := [value for name, value in stored["headers"] if is_secret(name)]:
            secrets["headers"] = values
        if body is not None:
            secrets["body"] = body["data"]
        if not secrets:
            return stored, secrets
        headers = [[name, None if is_secret(name) else value] for name, value in stored["headers"]]
        hollow = stored | {"url": url, "headers": headers}
        if query:
            hollow["query"] = None
        if body is not None:
            hollow["body"] = {"kind": body["kind"]}
        return hollow, secrets

    def join(self, stored: Document, secrets: Mapping[str, Any]) -> Document:
        joined = stored | {"headers": joined_values(stored, "headers", secrets)}
        if "query" in secrets:
            joined["url"] = text(stored.get("url"), "action.url") + text(secrets["query"], "sealed: query")
            joined.pop("query", None)
        if "body" in secrets:
            joined["body"] = fields(stored.get("body"), "action.body") | {"data": secrets["body"]}
        return joined

    def checker(self, settings: Settings) -> Callable[[HttpAction], None]:
        """What is returned raises InvalidField("callback_url") for an address that the guard refuses."""
        return partial(_check, guard=guard_of(settings))

    def executor(self, settings: Settings, ready: Callable[[], None]) -> Executor:
        """`ready` is not used: requests make progress in the courier's thread alone."""
        from scheduler_app.actions.http.sender import HttpExecutor, Sender

        check_ca_bundle(settings.callback_ca_bundle)
        sender = Sender(guard_of(settings), ca_bundle=settings.callback_ca_bundle or None)
        return HttpExecutor(sender, concurrency=settings.callback_origin_concurrency)


def _body(stored: Any, name: str) -> RequestBody:
    body = fields(stored, name)
    data = body.get("data")
    if not isinstance(data, bytes):
        raise wrong(f"{name}.data", data, "binary data")
    return RequestBody(BodyKind(one_of(body.get("kind"), f"{name}.kind", _BODY_KINDS)), data)


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
