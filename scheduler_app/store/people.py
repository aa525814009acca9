"""People who have signed in, their sessions, and what lets a command line in.

Of the tokens of sessions hashes alone are kept, as of those of keys. What the provider gave is sealed with a
key that is made of OIDC_CLIENT_SECRET: without that secret, nobody could use it either.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import bson
from pymongo import DESCENDING

from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.ids import TENANT, WholeId, name_of, tenant_of, whole_id
from scheduler_app.domain.person import MAX_PEOPLE, Grant, Person, PersonSession, session_key, token_digest
from scheduler_app.domain.stored_fields import Corrupt, flag, instant, items, one_of, optional, text, version
from scheduler_app.store.access_tokens import BY_KEY, MAX_SESSIONS
from scheduler_app.store.encryption import SecretBox, UnreadableSecret
from scheduler_app.store.mongo import BY_ID, CorruptReports, Document, Mongo

PERSON_VERSION: Final = 1
SESSION_VERSION: Final = 1
GRANT_VERSION: Final = 1
OF_TENANT_SEEN: Final = "seen_v1"
BY_PROVIDER_SESSION: Final = "provider_session_v1"
#: A command line shows its own secret within so long.
GRANT_SECONDS: Final = 600
#: What waits for a command line, of one person.
MAX_GRANTS: Final = 20


class People:
    def __init__(self, mongo: Mongo) -> None:
        self._people = mongo.collection("people")
        self._majority = mongo.majority("people")
        self._reports = CorruptReports(
            "person.corrupt",
            "What is kept of a person cannot be read; it is written anew at a sign-in",
            "person",
        )

    def seen(self, person: Person) -> list[WholeId]:
        """Notes a sign-in; returns those who are forgotten for it: there are `MAX_PEOPLE` of a tenant."""
        row = _person_row(person)
        first = {"first_seen_at": row.pop("first_seen_at")}
        self._people.update_one({"_id": row.pop("_id")}, {"$set": row, "$setOnInsert": first}, upsert=True)
        return self._forget_oldest(person.tenant)

    def given(self, person: str, grant: Grant) -> None:
        """Notes what a person may do from now on, by the name in the id."""
        self._people.update_one({"_id": person}, {"$set": _grant_fields(grant)}, hint=BY_ID)

    def of(self, tenant: str) -> list[Person]:
        """A tenant's, who was seen last first; with those of the installation, where that is `default`."""
        rows = self._majority.find({"tenant": tenant}, hint=OF_TENANT_SEEN).sort("last_seen_at", DESCENDING)
        return [each for row in rows.limit(MAX_PEOPLE) if (each := self._sound(row)) is not None]

    def get(self, person_id: WholeId) -> Person | None:
        row = self._majority.find_one({"_id": name_of(person_id), "tenant": tenant_of(person_id)})
        return None if row is None else self._sound(row)

    def delete_all(self, tenant: str) -> list[WholeId]:
        """Forgets all of a tenant; returns who they were."""
        rows = list(
            self._people.find({"tenant": tenant}, {"_id": 1}, hint=OF_TENANT_SEEN).limit(MAX_PEOPLE + 1)
        )
        return self._forget(tenant, rows)

    def _forget_oldest(self, tenant: str) -> list[WholeId]:
        newest_first = [("last_seen_at", DESCENDING)]
        rows = self._people.find({"tenant": tenant}, {"_id": 1}, sort=newest_first, hint=OF_TENANT_SEEN)
        return self._forget(tenant, list(rows.skip(MAX_PEOPLE).limit(MAX_PEOPLE)))

    def _forget(self, tenant: str, rows: list[Document]) -> list[WholeId]:
        for row in rows:
            self._people.delete_one({"_id": row["_id"], "tenant": tenant})
        return [whole_id(tenant, str(row["_id"])) for row in rows]

    def _sound(self, row: Mapping[str, Any]) -> Person | None:
        try:
            return _read_person(row)
        except Corrupt as error:
            self._reports.report(str(row.get("_id"))[:200], str(error))
            return None


class PersonSessions:
    """Sessions of people, in the collection that those of keys are in."""

    def __init__(self, mongo: Mongo, client_secret: str) -> None:
        self._sessions = mongo.collection("sessions")
        self._grants = mongo.collection("sign_in_grants")
        self._box = SecretBox(_key_of(client_secret))
        self._reports = CorruptReports("session.corrupt", "A person's session cannot be read", "session")

    def open(self, session: PersonSession, tokens: Mapping[str, str | None]) -> PersonSession:
        """Begins it, with what the provider gave, and returns it. Others of the same person may do from now
        on what a browser's may: what a command line may is as old as its browser's last check."""
        row = _session_row(session) | {"sealed": self._sealed(tokens)}
        self._sessions.insert_many([row])
        if session.is_browsers:
            change = {"$set": _grant_fields(session.grant)}
            self._sessions.update_many({"key": session.key}, change, hint=BY_KEY)
        self._end_oldest(session.key)
        return session

    def get(self, session_id: str) -> PersonSession | None:
        """None if it is over, or of a key."""
        row = self._sessions.find_one(
            {"_id": session_id, "$expr": {"$gt": ["$expires_at", "$$NOW"]}}, {"sealed": 0}, hint=BY_ID
        )
        return None if row is None or "begun_by" not in row else self._sound(row)

    def begin_check(self, browser: PersonSession, now: datetime, *, every_seconds: float) -> bool:
        """False where the provider was asked within these seconds: of all processes one asks it."""
        which = {"_id": browser.id, "checked_at": {"$lte": now - timedelta(seconds=every_seconds)}}
        checked = {"$set": {"checked_at": now}}
        if self._sessions.update_one(which, checked, hint=BY_ID).matched_count != 1:
            return False
        self._sessions.update_many({"key": browser.key, "begun_by": browser.id}, checked, hint=BY_KEY)
        return True

    def tokens_of(self, session_id: str) -> dict[str, str | None]:
        """What the provider gave; empty where it cannot be read any more."""
        row = self._sessions.find_one({"_id": session_id}, {"sealed": 1}, hint=BY_ID)
        if row is None or not isinstance(row.get("sealed"), bytes):
            return {}
        try:
            return dict(bson.decode(self._box.open(row["sealed"])))
        except UnreadableSecret:
            return {}

    def went_on(self, browser: PersonSession, grant: Grant, tokens: Mapping[str, str | None]) -> bool:
        """The provider lets the sign-in go on: with this grant, for each session of the person. False where
        it has ended meanwhile."""
        change = {"$set": _grant_fields(grant)}
        self._sessions.update_many({"key": browser.key}, change, hint=BY_KEY)
        kept = {"sealed": self._sealed(tokens)}
        return self._sessions.update_one({"_id": browser.id}, {"$set": kept}, hint=BY_ID).matched_count == 1

    def close(self, session: PersonSession) -> bool:
        """Ends it, and, if it is a browser's, all that it let in; False if it was over."""
        which: Document = {"key": session.key}
        which |= {"begun_by" if session.is_browsers else "_id": session.id}
        return self._close_each(which) > 0

    def close_all(self, person: str) -> int:
        """Ends every session of a person, by the name in the id; returns how many there were."""
        for grant in self._grants.find({"key": session_key(person)}, {"_id": 1}, hint=BY_KEY):
            self._grants.delete_one({"_id": grant["_id"]})
        return self._close_each({"key": session_key(person)})

    def close_of_provider(self, person: str | None, provider_session: str | None) -> int:
        """Ends what the provider has ended: a person's, one of its own sessions, or both."""
        if provider_session is None:
            return 0 if person is None else self.close_all(person)
        return self._close_each(*_of_provider(person, provider_session))

    def any_of_provider(self, person: str | None, provider_session: str | None) -> PersonSession | None:
        """One of those that `close_of_provider` ends, which can be read."""
        if person is None and provider_session is None:
            return None
        which, hint = _of_provider(person, provider_session)
        rows = self._sessions.find(which, {"sealed": 0}, hint=hint).limit(2 * MAX_SESSIONS)
        return next((found for row in rows if (found := self._sound(row)) is not None), None)

    def let_in(self, secret: str, session: PersonSession, challenge: str | None, now: datetime) -> bool:
        """Lets a command line in that will show `secret`, and the verifier of `challenge` where there is one.
        False where too many wait already."""
        which = {"key": session.key}
        if self._grants.count_documents(which, hint=BY_KEY, limit=MAX_GRANTS) >= MAX_GRANTS:
            return False
        row: Document = {
            "v": GRANT_VERSION,
            "tenant": session.grant.tenant or TENANT,
            "key": session.key,
            "begun_by": session.id,
            "created_at": now,
            "expires_at": now + timedelta(seconds=GRANT_SECONDS),
        }
        row |= {} if challenge is None else {"challenge": challenge}
        # A person may type a code twice.
        self._grants.update_one({"_id": token_digest(secret)}, {"$set": row}, upsert=True, hint=BY_ID)
        return True

    def take_grant(
        self, secret: str, now: datetime, *, with_challenge: bool
    ) -> tuple[str, str | None] | None:
        """The browser's session and the challenge of what was let in by this secret, once. `with_challenge`:
        what a browser brings has one, and what a person types has none; others may have seen the latter."""
        which = {"_id": token_digest(secret), "challenge": {"$exists": with_challenge}}
        row = self._grants.find_one(which, hint=BY_ID)
        if row is None or self._grants.delete_one({"_id": row["_id"]}).deleted_count != 1:
            return None
        return None if row["expires_at"] <= now else (str(row["begun_by"]), row.get("challenge"))

    def _sound(self, row: Mapping[str, Any]) -> PersonSession | None:
        try:
            return _read_session(row)
        except Corrupt as error:
            self._reports.report(str(row.get("_id"))[:200], str(error))
            return None

    def _sealed(self, tokens: Mapping[str, str | None]) -> bytes:
        return self._box.seal(bson.encode(dict(tokens)))

    def _close_each(self, which: Document, hint: str = BY_KEY) -> int:
        """One by one: a dry run knows no deletion of many."""
        rows = list(self._sessions.find(which, {"_id": 1}, hint=hint).limit(2 * MAX_SESSIONS))
        return sum(self._sessions.delete_one({"_id": row["_id"]}).deleted_count for row in rows)

    def _end_oldest(self, key: str) -> None:
        newest_first = [("created_at", DESCENDING)]
        rows = self._sessions.find({"key": key}, {"_id": 1}, sort=newest_first, hint=BY_KEY)
        for row in rows.skip(MAX_SESSIONS).limit(MAX_SESSIONS):
            self._sessions.delete_one({"_id": row["_id"]})


def _key_of(client_secret: str) -> str:
    digest = hmac.new(client_secret.encode(), b"rrule-scheduler sessions", hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode()


def _of_provider(person: str | None, provider_session: str | None) -> tuple[Document, str]:
    """The condition of what a provider ends, and the index that finds it."""
    which: Document = {} if provider_session is None else {"provider_session": provider_session}
    if person is None:
        return which, BY_PROVIDER_SESSION
    return which | {"key": session_key(person)}, BY_KEY


def _grant_fields(grant: Grant) -> Document:
    return {
        "tenant": grant.tenant or TENANT,
        "installation": grant.tenant is None,
        "scopes": sorted(grant.scopes),
    }


def _read_grant(row: Mapping[str, Any]) -> Grant:
    scopes = [
        one_of(each, "an item of scopes", tuple(KeyScope)) for each in items(row.get("scopes"), "scopes")
    ]
    everywhere = flag(row.get("installation"), "installation")
    return Grant(frozenset(map(KeyScope, scopes)), None if everywhere else text(row.get("tenant"), "tenant"))


def _person_row(person: Person) -> Document:
    row: Document = {
        "_id": name_of(person.id),
        "v": PERSON_VERSION,
        "subject": person.subject,
        "name": person.name,
        "mail": person.mail,
        "first_seen_at": person.first_seen_at,
        "last_seen_at": person.last_seen_at,
        "last_seen_from": person.last_seen_from,
        **_grant_fields(person.grant),
        "tenant": person.tenant,
    }
    return row


def _read_person(row: Mapping[str, Any]) -> Person:
    """Raises Corrupt."""
    get = row.get
    version(get("v"), PERSON_VERSION)
    return Person(
        id=whole_id(text(get("tenant"), "tenant"), text(get("_id"), "_id")),
        subject=text(get("subject"), "subject"),
        scopes=_read_grant(row).scopes,
        first_seen_at=instant(get("first_seen_at"), "first_seen_at"),
        last_seen_at=instant(get("last_seen_at"), "last_seen_at"),
        last_seen_from=text(get("last_seen_from"), "last_seen_from"),
        name=optional(text, get("name"), "name"),
        mail=optional(text, get("mail"), "mail"),
        is_installations=flag(get("installation"), "installation"),
    )


def _session_row(session: PersonSession) -> Document:
    row = {
        "_id": session.id,
        "v": SESSION_VERSION,
        "key": session.key,
        "begun_by": session.begun_by,
        "person": session.person,
        "called": session.called,
        **_grant_fields(session.grant),
        "setup": session.setup,
        "created_at": session.checked_at,
        "checked_at": session.checked_at,
        "expires_at": session.expires_at,
        "provider_session": session.provider_session,
    }
    return {name: value for name, value in row.items() if value is not None}


def _read_session(row: Mapping[str, Any]) -> PersonSession:
    """Raises Corrupt."""
    get = row.get
    version(get("v"), SESSION_VERSION)
    return PersonSession(
        id=text(get("_id"), "_id"),
        begun_by=text(get("begun_by"), "begun_by"),
        person=text(get("person"), "person"),
        called=text(get("called"), "called"),
        grant=_read_grant(row),
        setup=text(get("setup"), "setup"),
        checked_at=instant(get("checked_at"), "checked_at"),
        expires_at=instant(get("expires_at"), "expires_at"),
        provider_session=optional(text, get("provider_session"), "provider_session"),
    )
