"""The secret parts of a schedule's or a destination's document, sealed together.

One token for all of them, because opening one costs some 12 µs, however little is in it. A document without
such parts, and every document of a process without a key, stays as it is, and costs nothing.
"""

from collections.abc import Mapping
from typing import Any

import bson
from bson.errors import BSONError

from scheduler_app.actions.kind import ActionKind
from scheduler_app.actions.registry import KINDS
from scheduler_app.domain.field_types import Corrupt, Newer, fields, items, text
from scheduler_app.store.collection import Document
from scheduler_app.store.encryption import SecretBox

#: `v` of a document with sealed parts: a release that knows no such parts leaves it to others.
SEALED_VERSION = 2
#: `v` of a document that a release which does not know all of its fields would get wrong, such as one whose
#: action names a destination: it would call the path.
DESTINATION_VERSION = 3

#: The expression of a document's `action` without what is secret in it, sealed or not.
ACTION_WITHOUT_SECRETS: Document = {
    "$switch": {
        "branches": [
            {"case": {"$eq": ["$action.type", name]}, "then": kind.without_secrets}
            for name, kind in KINDS.items()
        ]
        # Another release's kind: which of its parts are secret is not known here.
        + [
            {
                "case": {"$eq": [{"$type": "$action.type"}, "string"]},
                "then": {"type": "$action.type"},
            }
        ],
        "default": next(iter(KINDS.values())).without_secrets,
    }
}

#: Stages of an update that take what is secret out of a document; it can be read all the same.
WIPE: list[Document] = [
    {"$set": {"v": 1, "action": ACTION_WITHOUT_SECRETS}},
    {"$unset": ["sealed", "signing", "action.query", "action.body"]},
]


def action_kind(action: Mapping[str, Any]) -> ActionKind[Any]:
    """Returns the kind of a stored action. Raises Corrupt where `type` is no text, and Newer for a name that
    is not in this release's registry: another release may know it."""
    name = text(action.get("type"), "action.type")
    kind = KINDS.get(name)
    if kind is None:
        raise Newer(f"action.type is {name[:50]!r}, and this release knows {', '.join(KINDS)}")
    return kind


def sealed(document: Document, secret_box: SecretBox) -> Document:
    """The document with its secret parts encrypted under `sealed`, and nothing in their places."""
    if not secret_box.encrypts:
        return document
    signing = document.get("signing")
    hollow, secrets = action_kind(document["action"]).split(document["action"])
    if signing is not None:
        secrets["signing"] = [each["secret"]["value"] for each in (signing, *signing["retiring"])]
    auth = document.get("auth")
    if auth is not None:
        secrets["auth"] = auth["secret"]
    if not secrets:
        return document
    document = document | {
        "v": max(SEALED_VERSION, document["v"]),
        "action": hollow,
        "sealed": secret_box.seal(bson.encode(secrets)),
    }
    if signing is not None:
        document["signing"] = {
            "since": signing["since"],
            "retiring": [{"until": each["until"]} for each in signing["retiring"]],
        }
    if auth is not None:
        document["auth"] = {key: value for key, value in auth.items() if key != "secret"}
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
    whole: Document = {**row, "action": action_kind(action).join(action, secrets)}
    if row.get("signing") is not None:
        whole["signing"] = _signing(fields(row["signing"], "signing"), secrets)
    if row.get("auth") is not None:
        whole["auth"] = fields(row["auth"], "auth") | {"secret": secrets.get("auth")}
    return whole


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
