"""Causes: what fails, since when, whom it touches, and what became of it; one document for each.

A living cause is found by its key, of which there is one at most: a unique index says so. Each write names
the write before it, so that of two processes that change a cause at once one reads it again.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from bson import Binary
from pymongo import ASCENDING, DESCENDING, ReplaceOne
from pymongo.errors import BulkWriteError

from scheduler_app.domain.cause import (
    FACTS,
    MAX_COUNTED,
    Cause,
    CauseKey,
    CauseKind,
    CauseState,
    FailingSchedule,
    Tally,
    Touched,
    opened,
)
from scheduler_app.domain.ids import WholeId, tenant_of
from scheduler_app.domain.stored_fields import (
    Corrupt,
    fields,
    flag,
    instant,
    items,
    one_of,
    optional,
    tenant,
    text,
    version,
    whole,
)
from scheduler_app.store.indexes import CAUSE_DEAD, CAUSE_FAILING, CAUSE_LIVING
from scheduler_app.store.mongo import BY_ID, Document, Mongo, new_token
from scheduler_app.store.paging import Page, PagedQuery, PageRequest, RowFilter
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

DOCUMENT_VERSION = 1
#: Living causes of the installation. A tenant that has as many of them as are left opens no further one.
MAX_LIVING: Final = 10_000
#: How often a change is tried where others change the same cause.
TRIES: Final = 5
#: A write is recognized by its token while no more than these follow it.
KEPT_TOKENS: Final = 4
_HASH_BYTES = 6


@dataclass(frozen=True, slots=True)
class CauseListFilter:
    """Filters of a list of causes; all that are given must match."""

    states: Collection[CauseState] = ()
    tag: str | None = None
    subject: str | None = None
    """A receiver: the key of a destination, or an origin."""


class Causes:
    def __init__(self, mongo: Mongo) -> None:
        self._causes = mongo.collection("causes")
        self._majority = mongo.majority("causes")

    def living(self, *, kinds: Collection[CauseKind] = ()) -> list[Cause]:
        """Those of these kinds, or of all, that are not over, of all tenants, the oldest first. Raises a
        STORE_FAULT."""
        which: Document = {"living": True} | ({"kind": {"$in": [*kinds]}} if kinds else {})
        rows = self._causes.find(which, hint=CAUSE_LIVING).limit(MAX_LIVING)
        return sorted(self._sound(rows), key=_in_order)

    def failing_after(self, key: str, *, limit: int) -> list[Cause]:
        """Living causes of failing receivers with keys after `key`, in the order of their keys."""
        which = {"living": True, "kind": CauseKind.FAILING.value, "key": {"$gt": key}}
        return self._sound(self._causes.find(which, hint=CAUSE_FAILING).sort("key", ASCENDING).limit(limit))

    def unsettled(self, tenant: str, *, limit: int) -> list[Cause]:
        """What the verdict of a tenant may be about: living causes, and those whose dead letters may be left;
        no dismissed ones, no facts, and no schedules that were set aside, which are counted. The oldest
        first."""
        kinds = sorted(FACTS | {CauseKind.SET_ASIDE})
        found: dict[str, Cause] = {}
        for which in ({"living": True}, {"dead": True}):
            index = CAUSE_LIVING if "living" in which else CAUSE_DEAD
            rows = self._causes.find(
                which | {"tenant": tenant, "dismissed_at": None, "kind": {"$nin": kinds}}, hint=index
            )
            found |= {cause.id: cause for cause in self._sound(rows.limit(limit))}
        return sorted(found.values(), key=_in_order)[:limit]

    def without_dead_letters(self, but: Collection[str], *, limit: int) -> list[Cause]:
        """Those whose dead letters may be left, of all tenants, but for these keys, which have some."""
        which = {"dead": True, "key": {"$nin": sorted(but)}}
        return self._sound(self._causes.find(which, hint=CAUSE_DEAD).limit(limit))

    def get(self, cause_id: str) -> Cause | None:
        """Raises Corrupt."""
        row = self._majority.find_one({"_id": cause_id})
        return None if row is None else from_document(row)

    def get_many(self, cause_ids: Collection[str]) -> dict[str, Cause]:
        """Those of these that there are and that can be read."""
        rows = self._majority.find({"_id": {"$in": list(cause_ids)}}, hint=BY_ID)
        return {cause.id: cause for cause in self._sound(rows)}

    def newest(self, keys: Collection[str]) -> dict[str, Cause]:
        """The newest cause of each of these keys, living or over. It asks nothing for no key."""
        found: dict[str, Cause] = {}
        if not keys:
            return found
        rows = self._causes.find({"key": {"$in": list(keys)}}, hint="key_v1").sort(
            [("key", 1), ("since", DESCENDING)]
        )
        for cause in self._sound(rows):
            found.setdefault(cause.key.id, cause)
        return found

    def page(self, tenant: str, window: PageRequest, which: CauseListFilter) -> Page[Cause]:
        """A tenant's failures, those that began last first."""
        fits: list[Document] = [{"$not": [{"$in": ["$kind", sorted(FACTS)]}]}]
        if which.states:
            fits.append({"$in": ["$state", sorted(each.value for each in which.states)]})
        if which.tag is not None:
            tags = {"$cond": [{"$isArray": "$tags.names"}, "$tags.names", []]}
            fits.append({"$in": [{"$literal": which.tag}, tags]})
        if which.subject is not None:
            fits.append({"$eq": ["$subject", {"$literal": which.subject}]})
        row_filter = RowFilter({"$and": fits})
        found = PagedQuery(self._causes, "since", {"tenant": tenant}, "list_v1", row_filter).page(window)
        return Page(self._sound(found.rows), found.next)

    def count_open(self, tenant: str, *, most: int) -> int:
        """How many failures the list of a tenant's open ones has; no more than `most` are counted."""
        which = {"living": True, "tenant": tenant, "dismissed_at": None, "kind": {"$nin": sorted(FACTS)}}
        return self._causes.count_documents(which, hint=CAUSE_LIVING, limit=most)

    def touch(self, tallies: Collection[Tally], *, observed: bool = False) -> list[Cause]:
        """Counts failures: opens the causes that are not living, and touches those that are. Returns the
        opened ones. Failures from before the end of the key's last cause belong to that and change nothing.
        `observed`: they are what an inspection sees now, and not further ones. Raises a STORE_FAULT, after
        which some may be counted: the caller counts those again."""
        made: list[Cause] = []
        left = {tally.key.id: tally for tally in tallies}
        for _ in range(TRIES):
            if not left:
                break
            newest = self.newest(left)
            changed, fresh = list[Cause](), list[Cause]()
            for key_id, tally in left.items():
                known = newest.get(key_id)
                if known is not None and known.is_living:
                    after = known.observed(tally) if observed else known.touched(tally)
                    if after is not known:
                        changed.append(after)
                elif known is None or known.over_at is None or tally.last > known.over_at:
                    # A failure before the end of the last cause of its key does not begin the next one.
                    fresh.append(opened(_after(tally, known)))
            fresh = self._within_bound(fresh)
            lost = {cause.key.id for cause in self._replaced(changed)} | self._inserted(fresh)
            made += [cause for cause in fresh if cause.key.id not in lost]
            left = {key_id: tally for key_id, tally in left.items() if key_id in lost}
        if left:
            log.warning(
                "causes.contended",
                message="Some failures were not counted for their causes: other processes wrote them too",
                count=len(left),
            )
        return made

    def unanswered(self) -> dict[str, list[str]]:
        """The living causes of failing receivers that have not succeeded since, by the receiver."""
        which = {"living": True, "kind": CauseKind.FAILING.value, "answering_since": None}
        found: dict[str, list[str]] = {}
        for row in self._causes.find(which, {"subject": 1}, hint=CAUSE_LIVING).limit(MAX_LIVING):
            if isinstance(row.get("subject"), str):
                found.setdefault(row["subject"], []).append(row["_id"])
        return found

    def answered(self, succeeded: Mapping[str, datetime]) -> None:
        """Notes that the receivers of these causes have succeeded, where that is news. Another process that
        changes one of them at this moment wins: the next success says the same."""
        rows = self._causes.find({"_id": {"$in": list(succeeded)}}, hint=BY_ID)
        changed = []
        for cause in self._sound(rows):
            after = cause.answered(succeeded[cause.id])
            if after is not cause:
                changed.append(after)
        self.write(changed)

    def change(self, cause_id: str, verb: Callable[[Cause], Cause]) -> Cause | None:
        """Stores what a verb makes of a cause; None where there is none, or others change it all the time.
        Raises what `verb` raises, and Corrupt."""
        for _ in range(TRIES):
            cause = self.get(cause_id)
            if cause is None:
                return None
            after = verb(cause)
            if after is cause or not self._replaced([after]):
                return after
        return None

    def end(self, key: CauseKey, at: datetime) -> bool:
        """Ends the living cause of a key, if there is one; False where others change it all the time."""
        for _ in range(TRIES):
            cause = self.newest([key.id]).get(key.id)
            if cause is None or not cause.is_living or not self._replaced([cause.over(at)]):
                return True
        return False

    def write(self, changed: Sequence[Cause]) -> list[Cause]:
        """Stores what verbs made of causes that were read; returns those that it has written. Others have
        changed the rest since."""
        refused = {cause.id for cause in self._replaced(changed)}
        return [cause for cause in changed if cause.id not in refused]

    def _replaced(self, changed: Sequence[Cause]) -> list[Cause]:
        """Returns those that were not written, because others have changed them."""
        if not changed:
            return []
        token = new_token()
        writes = [
            ReplaceOne(
                {"_id": cause.id, "writes": list(cause.writes)},
                to_document(replace(cause, writes=(*cause.writes[1 - KEPT_TOKENS :], token))),
                hint=BY_ID,
            )
            for cause in changed
        ]
        if self._causes.bulk_write(writes, ordered=False).matched_count == len(changed):
            return []
        ids = [cause.id for cause in changed]
        won = {row["_id"] for row in self._majority.find({"_id": {"$in": ids}, "writes": token}, {"_id": 1})}
        return [cause for cause in changed if cause.id not in won]

    def _inserted(self, fresh: Sequence[Cause]) -> set[str]:
        """The keys of those that another process has opened meanwhile."""
        if not fresh:
            return set()
        try:
            self._causes.insert_many([to_document(cause) for cause in fresh], ordered=False)
        except BulkWriteError as error:
            places = {each["index"] for each in error.details.get("writeErrors", [])}
            return {cause.key.id for place, cause in enumerate(fresh) if place in places}
        return set()

    def _within_bound(self, fresh: list[Cause]) -> list[Cause]:
        """Of each tenant as many as leave the same room for all others."""
        if not fresh:
            return fresh
        rows = self._causes.find({"living": True}, {"_id": 0, "key": 1}, hint=CAUSE_LIVING).limit(MAX_LIVING)
        living = Counter(tenant_of(row["key"]) for row in rows)
        room = MAX_LIVING - living.total()
        kept = []
        for cause in fresh:
            if living[cause.tenant] < room:
                living[cause.tenant] += 1
                room -= 1
                kept.append(cause)
        if len(kept) < len(fresh):
            log.error(
                "causes.full",
                message="Too many causes of a tenant are open: no further one is kept until some are over",
                left_out=len(fresh) - len(kept),
            )
        return kept

    def _sound(self, rows: Iterable[Document]) -> list[Cause]:
        found = []
        for row in rows:
            try:
                found.append(from_document(row))
            except Corrupt as error:
                log.error(
                    "cause.corrupt",
                    message="The document of a cause cannot be read; it is left out",
                    cause_id=str(row.get("_id"))[:200],
                    reason=str(error),
                )
        return found


def _in_order(cause: Cause) -> tuple[object, ...]:
    """The oldest first; those of one instant by what they are about."""
    return (cause.since, cause.key.kind, cause.key.subject, cause.key.failure)


def _after(tally: Tally, known: Cause | None) -> Tally:
    if known is not None and known.over_at is not None and tally.first <= known.over_at:
        return replace(tally, first=min(tally.last, known.over_at))
    return tally


def to_document(cause: Cause) -> Document:
    row: Document = {
        "_id": cause.id,
        "v": DOCUMENT_VERSION,
        "tenant": cause.tenant,
        "key": cause.key.id,
        "kind": cause.key.kind.value,
        "subject": cause.key.subject,
        "failure": cause.key.failure,
        "state": cause.state.value,
        "since": cause.since,
        "last": cause.last,
        "failed": cause.failed,
        "gave_up": cause.gave_up,
        "schedules": _touched_document(cause.schedules),
        "tags": _touched_document(cause.tags),
        "tenants": _touched_document(cause.tenants),
        "failing": [{"id": each.schedule_id, "at": each.failed_at} for each in cause.failing],
        "trend": [{"at": at, "count": count} for at, count in cause.trend],
        "error": cause.error,
        "event_id": cause.event_id,
        "writes": list(cause.writes),
    }
    marks = {"living": cause.is_living, "dead": cause.has_dead_letters, "more_failing": cause.more_failing}
    row |= {name: True for name, holds in marks.items() if holds}
    given = {
        "answering_since": cause.answering_since,
        "over_at": cause.over_at,
        "dismissed_at": cause.dismissed_at,
        "dismissed_by": cause.dismissed_by or None,
        "note": cause.note or None,
        "resent": cause.resent or None,
        "resent_at": cause.resent_at,
    }
    return row | {name: value for name, value in given.items() if value is not None}


def _touched_document(touched: Touched) -> Document:
    row: Document = {"names": list(touched.names)}
    if touched.others:
        row["others"] = Binary(b"".join(sorted(touched.others)))
    return row


def from_document(row: Mapping[str, Any]) -> Cause:
    """Raises Corrupt."""
    get = row.get
    version(get("v"), DOCUMENT_VERSION)
    cause_id = text(get("_id"), "_id")
    key = CauseKey(
        tenant(get("tenant"), "tenant", cause_id),
        CauseKind(one_of(get("kind"), "kind", tuple(CauseKind))),
        text(get("subject"), "subject"),
        text(get("failure"), "failure"),
    )
    if get("key") != key.id:
        raise Corrupt("key is not that of its tenant, kind, subject and failure")
    return Cause(
        id=WholeId(cause_id),
        key=key,
        since=instant(get("since"), "since"),
        last=instant(get("last"), "last"),
        failed=whole(get("failed"), "failed"),
        gave_up=whole(get("gave_up"), "gave_up"),
        schedules=_touched(get("schedules"), "schedules"),
        tags=_touched(get("tags"), "tags"),
        tenants=_touched(get("tenants"), "tenants"),
        failing=tuple(_failing(each) for each in items(get("failing"), "failing")),
        more_failing=bool(optional(flag, get("more_failing"), "more_failing")),
        trend=tuple(_part(each) for each in optional(items, get("trend"), "trend") or ()),
        error=text(get("error"), "error"),
        event_id=text(get("event_id"), "event_id"),
        answering_since=optional(instant, get("answering_since"), "answering_since"),
        over_at=optional(instant, get("over_at"), "over_at"),
        dismissed_at=optional(instant, get("dismissed_at"), "dismissed_at"),
        dismissed_by=optional(text, get("dismissed_by"), "dismissed_by") or "",
        note=optional(text, get("note"), "note") or "",
        resent=optional(whole, get("resent"), "resent") or 0,
        resent_at=optional(instant, get("resent_at"), "resent_at"),
        has_dead_letters=bool(optional(flag, get("dead"), "dead")),
        writes=tuple(text(each, "writes") for each in items(get("writes"), "writes")),
    )


def _touched(value: Any, name: str) -> Touched:
    row = fields(value, name)
    names = tuple(text(each, f"{name}.names") for each in items(row.get("names"), f"{name}.names"))
    raw = row.get("others", b"")
    if not isinstance(raw, bytes) or len(raw) % _HASH_BYTES or len(raw) > MAX_COUNTED * _HASH_BYTES:
        raise Corrupt(f"{name}.others is not what was written")
    others = frozenset(raw[at : at + _HASH_BYTES] for at in range(0, len(raw), _HASH_BYTES))
    return Touched(names, others)


def _part(value: Any) -> tuple[datetime, int]:
    row = fields(value, "trend")
    return instant(row.get("at"), "trend.at"), whole(row.get("count"), "trend.count")


def _failing(value: Any) -> FailingSchedule:
    row = fields(value, "failing")
    return FailingSchedule(text(row.get("id"), "failing.id"), instant(row.get("at"), "failing.at"))
