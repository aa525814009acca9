"""The secret parts of a schedule's document, sealed together.

One token for all of them, because opening one costs some 12 µs, however little is in it. A document without
such parts, and every document of a process without a key, stays as it is, and costs nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import bson
from bson.errors import BSONError

from scheduler_app.domain.masking import is_secret, split_query
from scheduler_app.store.collection import Document
from scheduler_app.store.documents.field_types import Corrupt, fields, items, text
from scheduler_app.store.encryption import SecretBox

#: `v` of a document with sealed parts: a release that knows no such parts leaves it to others.
SEALED_VERSION = 2

_URL = "$action.url"
_UP_TO = {"$regexFind": {"input": _URL, "regex": "^[^?#]*"}}
#: Stages of an update that take what is secret out of a document, sealed or not; it can be read all the same.
WIPE: list[Document] = [
    {
        "$set": {
            "v": 1,
            "action": {
                "type": "http",
                "url": {
                    "$cond": [
                        {"$eq": [{"$type": _URL}, "string"]},
                        {"$getField": {"field": "match", "input": _UP_TO}},
                        "",
                    ]
                },
                "method": "$action.method",
                "headers": [],
            },
        }
    },
    {"$unset": ["sealed", "signing", "action.query", "action.body"]},
]


def sealed(document: Document, secret_box: SecretBox) -> Document:
    """The document with its secret parts encrypted under `sealed`, and nothing in their places."""
    if not secret_box.encrypts:
        return document
    action, signing = document["action"], document.get("signing")
    url, query = split_query(action["url"])
    body, secrets = action.get("body"), dict[str, Any]()
    if query:
        secrets["query"] = query
    if values := [value for name, value in action["headers"] if is_secret(name)]:
        secrets["headers"] = values
    if body is not None:
        secrets["body"] = body["data"]
    if signing is not None:
        secrets["signing"] = [each["secret"]["value"] for each in (signing, *signing["retiring"])]
    if not secrets:
        return document
    hollow = action | {
        "url": url,
        "headers": [[name, None if is_secret(name) else value] for name, value in action["headers"]],
    }
    if query:
        hollow["query"] = None
    if body is not None:
        hollow["body"] = {"kind": body["kind"]}
    document = document | {
        "v": SEALED_VERSION,
        "action": hollow,
        "sealed": secret_box.seal(bson.encode(secrets)),
    }
    if signing is not None:
        document["signing"] = {
            "since": signing["since"],
            "retiring": [{"until": each["until"]} for each in signing["retiring"]],
        }
    return document


def opened(row: Mapping[str, Any], secret_box: SecretBox) -> Mapping[str, Any]:
    """The document with its secret parts in their places. Raises Corrupt and UnreadableSecret."""
    token = row.get("sealed")
    if token is None:
        return row  # what was sealed and has lost it has holes, which its reader finds
    if not isinstance(token, bytes):
        raise Corrupt("sealed is no binary data")
    try:
        secrets = bson.decode(secret_box.open(token))
    except BSONError as error:
        raise Corrupt(f"sealed: {error}") from None
    action = fields(row.get("action"), "action")
    whole: Document = {**row, "action": _filled(action, secrets)}
    if row.get("signing") is not None:
        whole["signing"] = _signing(fields(row["signing"], "signing"), secrets)
    return whole


def _filled(action: Document, secrets: Document) -> Document:
    values = iter(items(secrets.get("headers", []), "sealed: headers"))
    pairs = (
        items(pair, "an item of action.headers") for pair in items(action.get("headers"), "action.headers")
    )
    filled = action | {"headers": [_pair(pair, values) for pair in pairs]}
    if any(True for _ in values):
        raise Corrupt("action.headers and what is sealed of them do not fit together")
    if "query" in secrets:
        filled["url"] = text(action.get("url"), "action.url") + text(secrets["query"], "sealed: query")
        del filled["query"]
    if "body" in secrets:
        filled["body"] = fields(action.get("body"), "action.body") | {"data": secrets["body"]}
    return filled


def _pair(pair: list[Any], values: Iterator[Any]) -> list[Any]:
    return [pair[0], next(values, None)] if len(pair) == 2 and pair[1] is None else pair


def _signing(signing: Document, secrets: Document) -> Document:
    values = iter(items(secrets.get("signing", []), "sealed: signing"))

    def secret() -> Document:
        return {"enc": 0, "value": next(values, None)}

    return signing | {
        "secret": secret(),
        "retiring": [
            fields(each, "an item of signing.retiring") | {"secret": secret()}
            for each in items(signing.get("retiring"), "signing.retiring")
        ],
    }
