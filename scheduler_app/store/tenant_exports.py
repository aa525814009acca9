"""Exports of everything that belongs to a tenant, as documents with names, revisions and cursors as they are.

Collections are named here one by one, because a new one may hold secrets: a test compares them with those
that there are.
"""

from collections.abc import Mapping
from typing import Any, Final

import bson
from bson import json_util
from bson.errors import BSONError

from scheduler_app.domain.ids import SEPARATOR, TENANT
from scheduler_app.domain.stored_fields import Corrupt, Newer
from scheduler_app.store.encryption import SecretBox, UnreadableSecret, action_kind, open_document
from scheduler_app.store.mongo import BY_ID, Document, Mongo

#: In an order in which what is named comes before what names it.
EXPORTED: Final = (
    *("calendars", "ended_calendars", "destinations", "schedules", "ended_revisions"),
    *("blackouts", "kill_switches", "notifications", "silences", "heartbeats", "calendar_feeds"),
    *("events", "backfills", "redrives", "causes", "tellings", "edits", "figures", "ledger"),
)
#: Of the moment: requests, keys with what they have opened, of which there are hashes alone, and people, whom
#: each sign-in notes anew. The audit has an export of its own.
NOT_EXPORTED: Final = frozenset(
    (
        *("api_keys", "sessions", "idempotency", "cancel_requests", "people", "sign_in_grants"),
        *("audit", "deletions", "quotas"),
    )
)
#: Bodies may be large: so many documents are in memory at a time.
DOCUMENTS_A_PAGE: Final = 50
#: Collections whose ids do not all begin with the tenant's name and a colon.
_OTHER_IDS: Final = frozenset(("edits", "ledger", "kill_switches", "blackouts"))
#: Of claims, which mean nothing elsewhere.
_CLAIMS: Final = ("owner", "lease_until", "dispatcher")
_JSON: Final = json_util.RELAXED_JSON_OPTIONS


class TenantExports:
    def __init__(self, mongo: Mongo, secret_box: SecretBox) -> None:
        self._mongo = mongo
        self._secret_box = secret_box

    def page(self, collection: str, tenant: str, after: Any, *, with_secrets: bool) -> tuple[list[str], Any]:
        """The next documents of a tenant in the order of their ids, after the one with the id `after`, as
        JSON; and where the next page begins, None at the end. Raises a STORE_FAULT."""
        which: Document = {"tenant": tenant}
        if tenant != TENANT and collection not in _OTHER_IDS:
            after = after or f"{tenant}{SEPARATOR}"
            which["_id"] = {"$gt": after, "$lt": f"{tenant}{chr(ord(SEPARATOR) + 1)}"}
        elif after is not None:
            which["_id"] = {"$gt": after}
        found = self._mongo.majority(collection).find(which, sort=[("_id", 1)], hint=BY_ID)
        rows = list(found.limit(DOCUMENTS_A_PAGE).batch_size(DOCUMENTS_A_PAGE))
        lines = [self._line(collection, row, with_secrets=with_secrets) for row in rows]
        return lines, rows[-1]["_id"] if len(rows) == DOCUMENTS_A_PAGE else None

    def _line(self, collection: str, row: Document, *, with_secrets: bool) -> str:
        why = "not asked for"
        document, left_out = row, list[str]()
        if with_secrets:
            try:
                document = _opened(collection, row, self._secret_box)
            except (Corrupt, Newer, UnreadableSecret) as error:
                with_secrets, why = False, str(error)[:300]
        if not with_secrets:
            document, left_out = _without_secrets(collection, row)
        document = {name: value for name, value in document.items() if name not in _CLAIMS}
        line: Document = {"collection": collection, "document": document}
        if left_out:
            line["left_out"] = {"fields": left_out, "reason": why}
        return json_util.dumps(line, json_options=_JSON, ensure_ascii=False, separators=(",", ":"))


def _opened(collection: str, row: Document, secret_box: SecretBox) -> Document:
    """The document with what is sealed in its place. Raises Corrupt, Newer and UnreadableSecret."""
    if row.get("sealed") is None:
        return row
    if collection == "notifications":
        try:
            found = row | bson.decode(secret_box.open(bytes(row["sealed"])))
        except (BSONError, TypeError) as error:
            raise Corrupt(f"sealed: {error}") from None
    else:
        found = dict(open_document(row, secret_box))
    return {name: value for name, value in found.items() if name != "sealed"}


#: What has secrets in it wherever it stands, and hashes by which a token opens something.
_SECRET: Final = frozenset(("sealed", "signing", "auth", "secret_sha256"))


def _without_secrets(collection: str, row: Document) -> tuple[Document, list[str]]:
    """The document without what is secret in it, sealed or not; and the names of what it lacks."""
    secret = _SECRET | ({"to"} if collection == "notifications" else set())
    left_out = set(secret & row.keys())
    found = {name: value for name, value in row.items() if name not in secret}
    action = row.get("action")
    # What is sealed is not in the action any more.
    if isinstance(action, Mapping) and "sealed" not in row:
        found["action"] = _hollow(dict(action))
        if found["action"] != action:
            left_out.add("action")
    return found, sorted(left_out)


def _hollow(action: Document) -> Document:
    try:
        hollow, _ = action_kind(action).split(action)
    except (Corrupt, Newer, KeyError, TypeError, ValueError, AttributeError):
        # Nobody knows which of its parts are secret.
        return {"type": action.get("type")}
    return hollow
