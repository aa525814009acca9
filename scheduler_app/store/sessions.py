"""Sessions of browsers: who has signed in with which API key.

Only digests are stored: neither a token nor a key can be read from the database.
"""

import hashlib
import secrets
from collections.abc import Collection

from pymongo import DESCENDING

from scheduler_app.store.documents.leases import lease
from scheduler_app.store.mongo import Mongo

DOCUMENT_VERSION = 1
BY_KEY = "key_v1"
#: A session ends after so long, however busy it is.
SESSION_SECONDS = 12 * 3600
#: Sessions that one key may have at a time: beyond that, the oldest end.
MAX_SESSIONS = 100


class Sessions:
    def __init__(self, mongo: Mongo) -> None:
        self._sessions = mongo.collection("sessions")

    def open(self, key_digest: str) -> str:
        """Begins a session of the key with this digest; returns its token, which is stored nowhere."""
        token = secrets.token_urlsafe(32)
        begun = {
            "v": DOCUMENT_VERSION,
            "key": key_digest,
            "created_at": "$$NOW",
            "expires_at": lease(SESSION_SECONDS),
        }
        # An update, because only an update can write mongod's own time.
        self._sessions.update_one({"_id": _digest(token)}, [{"$set": begun}], upsert=True)
        self._end_oldest(key_digest)
        return token

    def key_of(self, token: str, key_digests: Collection[str]) -> str | None:
        """The digest of the key that the session belongs to; None if it is over, or its key is none of
        `key_digests`: a key that was taken out of the settings ends its sessions."""
        which = {
            "_id": _digest(token),
            "key": {"$in": list(key_digests)},
            "$expr": {"$gt": ["$expires_at", "$$NOW"]},
        }
        row = self._sessions.find_one(which, {"key": 1}, hint="_id_")
        return row["key"] if row else None

    def close(self, token: str) -> None:
        """Ends one session."""
        self._sessions.delete_one({"_id": _digest(token)})

    def close_all(self, key_digest: str) -> int:
        """Ends every session of a key; returns how many there were."""
        return self._sessions.delete_many({"key": key_digest}, hint=BY_KEY).deleted_count

    def _end_oldest(self, key_digest: str) -> None:
        newest_first = [("created_at", DESCENDING)]
        rows = self._sessions.find({"key": key_digest}, {"_id": 1}, sort=newest_first, hint=BY_KEY)
        if beyond := [row["_id"] for row in rows.skip(MAX_SESSIONS).limit(MAX_SESSIONS)]:
            self._sessions.delete_many({"_id": {"$in": beyond}})


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
