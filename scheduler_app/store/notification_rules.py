"""The rules of notifications in MongoDB. Addresses and the signing secret are sealed together."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import bson
from bson.errors import BSONError
from pymongo import ReplaceOne

from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.ids import WholeId, name_of, tenant_of
from scheduler_app.domain.notice_action import ChannelKind
from scheduler_app.domain.notification_rule import (
    LEAST_REMIND_SECONDS,
    MAX_AFTER_SECONDS,
    MAX_HOURS,
    MAX_REMIND_SECONDS,
    MAX_RULES,
    NotificationChannel,
    NotificationHours,
    NotificationRule,
    Told,
)
from scheduler_app.domain.stored_fields import (
    Corrupt,
    Newer,
    fields,
    instant,
    items,
    number,
    one_of,
    optional,
    tenant,
    text,
    version,
)
from scheduler_app.store.audit import AuditedDocuments, audited
from scheduler_app.store.audit_lines import plain_fields
from scheduler_app.store.bulk_writes import insert_new
from scheduler_app.store.calendars import Calendars
from scheduler_app.store.encryption import SecretBox, UnreadableSecret
from scheduler_app.store.indexes import OF_TENANT
from scheduler_app.store.mongo import BY_ID, CorruptReports, Document, Mongo, lease, new_token, unclaimed
from scheduler_app.store.schedules.trigger_documents import read_trigger, trigger_document
from scheduler_app.store.silences import match_document, read_match

DOCUMENT_VERSION = 1
#: Of all tenants.
_MAX_READ: Final = 10_000
_KINDS = tuple(kind.value for kind in ChannelKind)
_WORDS = tuple(word.value for word in Told)


@dataclass(frozen=True, slots=True)
class CorruptNotificationRule:
    """A stored rule that cannot be read, and why. It tells nothing."""

    id: WholeId
    reason: str

    @property
    def name(self) -> str:
        return name_of(self.id)


class NotificationRules:
    def __init__(self, mongo: Mongo, secret_box: SecretBox, calendars: Calendars) -> None:
        self._rules = mongo.collection("notifications")
        self._majority = mongo.majority("notifications")
        self._secret_box = secret_box
        self.audited = AuditedDocuments(mongo, self._rules, "notification", shown=self._told)
        self._calendars = calendars
        self._reports = CorruptReports(
            "notification.corrupt",
            "The rule of a notification cannot be read and tells nothing; set it again",
            "notification",
        )

    @audited()
    def put(self, rule: NotificationRule) -> bool:
        """Stores it under its id; whether there was none."""
        row = self._document(rule)
        if not insert_new(self._rules, [row]):
            return True
        self._rules.bulk_write([ReplaceOne({"_id": row["_id"]}, row)])
        return False

    @audited()
    def delete(self, rule_id: WholeId) -> bool:
        """False where there is none of that id."""
        return self._rules.delete_one({"_id": rule_id}).deleted_count == 1

    def get(self, rule_id: WholeId) -> NotificationRule | CorruptNotificationRule | None:
        row = self._majority.find_one({"_id": rule_id})
        return None if row is None else self.read(row)

    def of(self, tenant: str) -> list[NotificationRule | CorruptNotificationRule]:
        """A tenant's, by name."""
        rows = self._majority.find({"tenant": tenant}, hint=OF_TENANT).limit(MAX_RULES)
        return sorted(map(self.read, rows), key=lambda each: each.id)

    def everybodys(self) -> list[NotificationRule]:
        """All that can be read. The others are reported, once each."""
        found = list(map(self.read, self._rules.find({}, hint=BY_ID).limit(_MAX_READ)))
        for each in found:
            if isinstance(each, CorruptNotificationRule):
                self._reports.report(each.id, each.reason)
        return [each for each in found if isinstance(each, NotificationRule)]

    def telling(self, word: Told) -> list[NotificationRule]:
        """Those that tell of it, and that can be read."""
        rows = self._rules.find({"on": word.value}, hint=BY_ID).limit(_MAX_READ)
        return [each for each in map(self.read, rows) if isinstance(each, NotificationRule)]

    def observing(self, calendar_id: WholeId) -> list[str]:
        """The names of those whose hours observe a calendar."""
        which = {"tenant": tenant_of(calendar_id), "hours.calendar": name_of(calendar_id)}
        rows = self._rules.find(which, {"_id": 1}, hint=OF_TENANT).limit(MAX_RULES)
        return [name_of(row["_id"]) for row in rows]

    def take_turn(self, rule_id: WholeId, *, seconds: float) -> str | None:
        """Claims the rule: of several beats one tells at a time, so that its bound holds. Returns the token
        that ends the turn; None where another beat has it."""
        token = new_token()
        turn = {"owner": {"$literal": token}, "until": lease(seconds)}
        free = {"_id": rule_id, **unclaimed("turn.owner", "turn.until")}
        taken = self._rules.update_one(free, [{"$set": {"turn": turn}}])
        return token if taken.matched_count else None

    def end_turn(self, rule_id: WholeId, token: str) -> None:
        self._rules.update_one({"_id": rule_id, "turn.owner": token}, {"$unset": {"turn": ""}})

    def reseal(self) -> tuple[int, dict[str, str]]:
        """Encrypts with the newest key what an older one has sealed. Returns how many rules that were, and
        those that cannot be read with the reasons."""
        sealed, unreadable = 0, dict[str, str]()
        for row in self._majority.find({}, hint=BY_ID).limit(_MAX_READ):
            token = row.get("sealed")
            if isinstance(token, bytes) and self._secret_box.is_newest(token):
                continue
            found = self.read(row)
            if isinstance(found, CorruptNotificationRule):
                unreadable[found.id] = found.reason
                continue
            same = {"_id": row["_id"], "created_at": row["created_at"], "sealed": token}
            written = self._rules.bulk_write([ReplaceOne(same, self._document(found))])
            sealed += written.matched_count
        return sealed, unreadable

    def _document(self, rule: NotificationRule) -> Document:
        secrets: Document = {
            "to": [{"type": each.kind.value, "address": each.address} for each in rule.to],
            "signing": rule.signing and {"secret": rule.signing.secret, "since": rule.signing.since},
        }
        kept = (
            {"sealed": self._secret_box.seal(bson.encode(secrets))} if self._secret_box.encrypts else secrets
        )
        document: Document = {
            "_id": rule.id,
            "v": DOCUMENT_VERSION,
            "tenant": rule.tenant,
            "on": [each.value for each in rule.on],
            "match": match_document(rule.match),
            "after_seconds": rule.after_seconds,
            "remind_seconds": rule.remind_seconds,
            "hours": rule.hours and _hours_document(rule.hours),
            "created_at": rule.created_at,
            **kept,
        }
        return {name: value for name, value in document.items() if value is not None}

    def _told(self, row: Document) -> Document:
        """What the audit tells: of addresses the kinds, and of all secrets together a digest."""
        told = plain_fields(row)
        try:
            secrets = self._opened(row)
        except (Corrupt, UnreadableSecret) as error:
            return told | {"secrets": str(error)}
        to, signing = secrets.get("to"), secrets.get("signing")
        kinds = [each.get("type") for each in to] if isinstance(to, list) else None
        return told | {
            "to": kinds,
            "signing": None,
            "secrets": self._secret_box.digest(row["_id"], to, signing),
        }

    def read(self, row: Document) -> NotificationRule | CorruptNotificationRule:
        try:
            return self._decoded(row)
        except (Corrupt, Newer, UnreadableSecret) as error:
            return CorruptNotificationRule(WholeId(str(row["_id"])), str(error))
        except Exception as error:  # a document edited by hand may cause any error
            reason = f"{type(error).__name__}: {error}"[:300]
            return CorruptNotificationRule(WholeId(str(row["_id"])), reason)

    def _decoded(self, row: Document) -> NotificationRule:
        """Raises Corrupt, Newer and UnreadableSecret."""
        get = row.get
        version(get("v"), DOCUMENT_VERSION)
        own_id = WholeId(text(get("_id"), "_id"))
        tenant(get("tenant"), "tenant", own_id)
        secrets = self._opened(row)
        return NotificationRule(
            id=own_id,
            to=tuple(map(_channel, items(secrets.get("to"), "to"))),
            on=tuple(Told(one_of(each, "on", _WORDS)) for each in items(get("on"), "on")),
            match=read_match(get("match")),
            after_seconds=number(get("after_seconds"), "after_seconds", least=0, most=MAX_AFTER_SECONDS),
            remind_seconds=None if get("remind_seconds") is None else _reminding(get("remind_seconds")),
            hours=None if get("hours") is None else self._hours(get("hours"), tenant_of(own_id)),
            signing=None if secrets.get("signing") is None else _signing(secrets["signing"]),
            created_at=instant(get("created_at"), "created_at"),
        )

    def _hours(self, value: Any, tenant: str) -> NotificationHours:
        """With their calendar, as it is now. Raises Corrupt."""
        hours = _hours(value)
        if hours.calendar is None:
            return hours
        return replace(hours, calendar=self._calendars.attached_use(hours.calendar, tenant))

    def _opened(self, row: Document) -> Mapping[str, Any]:
        token = row.get("sealed")
        if token is None:
            return row
        if not isinstance(token, bytes):
            raise Corrupt("sealed is no binary data")
        try:
            return bson.decode(self._secret_box.open(token))
        except BSONError as error:
            raise Corrupt(f"sealed: {error}") from None


def _channel(value: Any) -> NotificationChannel:
    row = fields(value, "an item of to")
    return NotificationChannel(
        ChannelKind(one_of(row.get("type"), "to.type", _KINDS)), text(row.get("address"), "to.address")
    )


def _signing(value: Any) -> Signing:
    row = fields(value, "signing")
    return Signing(text(row.get("secret"), "signing.secret"), instant(row.get("since"), "signing.since"))


def _reminding(value: Any) -> float:
    return number(value, "remind_seconds", least=LEAST_REMIND_SECONDS, most=MAX_REMIND_SECONDS)


def _hours_document(hours: NotificationHours) -> Document:
    document = trigger_document(hours.trigger) | {
        "duration_seconds": hours.duration.total_seconds(),
        "since": hours.since,
        "calendar": hours.calendar and hours.calendar.name,
    }
    return {name: value for name, value in document.items() if value is not None}


def _hours(value: Any) -> NotificationHours:
    row = fields(value, "hours")
    seconds = number(
        row.get("duration_seconds"), "hours.duration_seconds", least=1, most=MAX_HOURS.total_seconds()
    )
    made = NotificationHours(
        read_trigger(row), timedelta(seconds=seconds), instant(row.get("since"), "hours.since")
    )
    return made.observing(optional(text, row.get("calendar"), "hours.calendar"))
