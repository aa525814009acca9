"""Encryption of secrets at rest, where there is a key, and of the secrets of a request between an export and
an import.

The secret parts of a schedule's, a destination's or a message's document are sealed together in one token,
because opening a token costs some 12 µs, however little is in it. A document without such parts, and every
document of a process without a key, stays as it is and costs nothing.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import bson
from bson.errors import BSONError
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from scheduler_app.actions.kind import ActionKind
from scheduler_app.actions.registry import KINDS
from scheduler_app.domain.errors import InvalidField, SchedulerError
from scheduler_app.domain.http_action import BodyKind, HttpAction, RequestBody
from scheduler_app.domain.masking import is_secret, split_query
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.domain.stored_fields import Corrupt, Newer, fields, items, one_of, optional, text
from scheduler_app.store.mongo import Document


class UnreadableSecret(SchedulerError):
    """A stored secret was encrypted with a key that SECRETS_KEY no longer holds."""


def why_unreadable(error: Exception) -> tuple[str, bool]:
    """Why a document could not be read, of the error that its reading raised; and whether nothing is wrong
    with it: a newer release wrote it, or this process lacks the key to its secrets."""
    readable_elsewhere = isinstance(error, Newer | UnreadableSecret)
    said = readable_elsewhere or isinstance(error, Corrupt)
    return str(error) if said else f"{type(error).__name__}: {error}"[:300], readable_elsewhere


class SecretBox:
    """Encrypts with the newest key, decrypts with any of them."""

    def __init__(self, keys: str = "") -> None:
        """`keys`: Fernet keys separated by commas, newest first. Raises InvalidField("SECRETS_KEY")."""
        try:
            fernets = [Fernet(key.strip()) for key in keys.split(",") if key.strip()]
        except ValueError:
            raise InvalidField(
                "SECRETS_KEY",
                "SECRETS_KEY must be Fernet keys (32 bytes, URL-safe base64), one or several; one is made by:"
                ' python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"',
            ) from None
        self._fernet = MultiFernet(fernets) if fernets else None
        self._newest = fernets[0] if fernets else None
        self._digest_key = f"audit:{keys.partition(',')[0].strip()}".encode()

    @property
    def encrypts(self) -> bool:
        return self._fernet is not None

    def seal(self, data: bytes) -> bytes:
        """A Fernet token, in base64. Only where `encrypts`."""
        if self._newest is None:
            raise ValueError("without a key nothing is sealed")
        return self._newest.encrypt(data)

    def open(self, token: bytes) -> bytes:
        """Raises UnreadableSecret."""
        if self._fernet is None:
            raise UnreadableSecret("a stored secret is encrypted, and SECRETS_KEY is not set")
        try:
            return self._fernet.decrypt(token)
        except InvalidToken:
            raise UnreadableSecret(
                "a stored secret was encrypted with a key that SECRETS_KEY lacks"
            ) from None

    def digest(self, *parts: object) -> str:
        """Tells whether two secrets are the same, and, where there is a key, nothing else of them."""
        text = json.dumps(parts, sort_keys=True, default=str)
        return hmac.new(self._digest_key, text.encode(), hashlib.sha256).hexdigest()[:16]

    def is_newest(self, token: bytes) -> bool:
        """Whether the newest key decrypts the token, so that it need not be encrypted again."""
        try:
            return self._newest is not None and bool(self._newest.decrypt(token))
        except InvalidToken:
            return False

    def open_single(self, sealed: dict[str, Any]) -> str:
        """One value as releases before 0.2 kept it, `{"enc": 1, "value": …}`, or 0 where there was no key.
        Raises UnreadableSecret."""
        value = str(sealed["value"])
        return self.open(value.encode()).decode() if sealed["enc"] else value


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
    """Returns the kind of a stored action. Raises Corrupt where `type` is not text, and Newer for a name that
    is not in this release's registry: another release may know it."""
    name = text(action.get("type"), "action.type")
    kind = KINDS.get(name)
    if kind is None:
        raise Newer(f"action.type is {name[:50]!r}, and this release knows {', '.join(KINDS)}")
    return kind


def seal_document(document: Document, secret_box: SecretBox) -> Document:
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


def open_document(row: Mapping[str, Any], secret_box: SecretBox) -> Mapping[str, Any]:
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


def without_secrets(row: Mapping[str, Any], secret_box: SecretBox) -> Document:
    """What the audit tells of a document: a digest stands for all of its secrets together."""
    told = {name: value for name, value in row.items() if name not in _UNTOLD}
    try:
        opened = open_document(row, secret_box)
        action = fields(opened["action"], "action")
        hollow, secrets = action_kind(action).split(action)
    except (Corrupt, SchedulerError, KeyError) as error:
        return told | {"secrets": str(error)}
    except Exception as error:  # a corrupt document has any shape, and is deleted all the same
        return told | {"secrets": f"cannot be read: {type(error).__name__}"}
    signing, auth = opened.get("signing"), opened.get("auth")
    if isinstance(auth, dict):
        told["auth"] = {name: value for name, value in auth.items() if name != "secret"}
    if isinstance(signing, dict):
        told["signing"] = {"since": signing.get("since")}
    if secrets or signing or auth:
        told["secrets"] = secret_box.digest(row["_id"], secrets, signing, auth)
    return told | {"action": hollow}


#: What every document has, and what differs each time that it is sealed.
_UNTOLD = ("_id", "v", "tenant", "version", "sealed", "updated_at")


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


#: Told apart from what else is encrypted with the key: no token out of the database is taken for one.
PURPOSE = "export"
#: The largest body, headers and URL, encrypted and in base64.
MAX_TOKEN = 512 * 1024
_BODY_KINDS = tuple(kind.value for kind in BodyKind)


def seal_action(action: HttpAction, secret_box: SecretBox) -> str | None:
    """The token; None if there is no key, or nothing secret. The URL in it binds it to its origin."""
    secret = [list(pair) for pair in action.headers if is_secret(pair[0])]
    if not secret_box.encrypts or not (secret or action.body or split_query(action.url)[1]):
        return None
    parts: dict[str, Any] = {"for": PURPOSE, "url": action.url, "headers": secret}
    if action.destination is not None:
        parts["destination"] = action.destination
    if action.body is not None:
        parts["body"] = {"kind": action.body.kind.value, "data": action.body.data}
    return secret_box.seal(bson.encode(parts)).decode()


def open_action(token: str, secret_box: SecretBox) -> HttpAction:
    """What an export has sealed, for masks to stand for. Raises InvalidField("sealed")."""
    if len(token) > MAX_TOKEN:
        raise InvalidField("sealed", f"must not exceed {MAX_TOKEN // 1024} KiB")
    try:
        parts = bson.decode(secret_box.open(token.encode()))
        if parts.get("for") != PURPOSE:
            raise Corrupt("is not of an export")
        body = parts.get("body")
        return HttpAction(
            url=text(parts.get("url"), "url"),
            destination=optional(text, parts.get("destination"), "destination"),
            headers=tuple(
                (text(name, "a name"), text(value, "a value"))
                for name, value in items(parts.get("headers"), "headers")
            ),
            body=None if body is None else _body(fields(body, "body")),
        )
    except UnreadableSecret:
        raise InvalidField(
            "sealed",
            "cannot be opened with the SECRETS_KEY of this API: add the key of the API that exported it at"
            " the end of SECRETS_KEY, or leave sealed out and give the real values instead of the masks",
        ) from None
    except (Corrupt, BSONError, ValueError) as error:
        raise InvalidField("sealed", f"is no sealed value of an export ({error})"[:200]) from None


def open_draft(draft: ScheduleDraft, secret_box: SecretBox) -> ScheduleDraft:
    """With the secrets of an export in reach of the draft's masks. Raises InvalidField("sealed")."""
    if draft.sealed is NOT_GIVEN:
        return draft
    return replace(draft, known=open_action(draft.sealed, secret_box))


def _body(body: dict[str, Any]) -> RequestBody:
    return RequestBody(BodyKind(one_of(body.get("kind"), "kind", _BODY_KINDS)), bytes(body["data"]))
