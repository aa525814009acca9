"""What a forecast is made of: the schedules with a future, and the events that wait."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import NamedTuple

from pymongo.client_session import ClientSession

from scheduler_app.domain.event import LIVING
from scheduler_app.domain.forecast import Buckets
from scheduler_app.domain.origin import UNKNOWN_ORIGIN
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store.calendars.calendars import Calendars
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.faults import told_apart
from scheduler_app.store.mongo import Document, Mongo
from scheduler_app.store.schedules.corrupt import CorruptSchedule, read
from scheduler_app.store.schedules.cursors import UNREAD, without_request
from scheduler_app.store.schedules.documents import READABLE

_LIVING: Document = {"$in": sorted(LIVING)}
_ORIGIN: Document = {"$cond": [{"$eq": [{"$type": "$origin"}, "string"]}, "$origin", UNKNOWN_ORIGIN]}
_MILLISECOND = timedelta(milliseconds=1)


class Waiting(NamedTuple):
    """How many events wait for one receiver in one bucket."""

    bucket: int
    receiver: str
    messages: bool
    count: int


class Forecasts:
    def __init__(self, mongo: Mongo, secret_box: SecretBox, calendars: Calendars) -> None:
        self._mongo = mongo
        self._secret_box = secret_box
        self._calendars = calendars

    @contextmanager
    def at_one_moment(self, *, tenant: str) -> Iterator["Moment"]:
        """What the tenant has, seen as it is now, however long that takes to read: what a beat expands
        meanwhile is neither counted twice nor missed."""
        with told_apart(), self._mongo.client.start_session(snapshot=True) as session:
            yield Moment(self._mongo, self._secret_box, self._calendars, session, tenant)


class Moment:
    """One tenant's schedules and events as they were at one moment."""

    def __init__(
        self,
        mongo: Mongo,
        secret_box: SecretBox,
        calendars: Calendars,
        session: ClientSession,
        tenant: str,
    ) -> None:
        self._schedules = mongo.collection("schedules")
        self._events = mongo.collection("events")
        self._secret_box = secret_box
        self._calendars = calendars
        self._session = session
        self._tenant = tenant

    def sample(self, size: int) -> tuple[int, list[str]]:
        """How many active schedules there are, and the ids of `size` of them by chance, or of all. By
        index alone."""
        which: Document = {"tenant": self._tenant, "state": ScheduleState.ACTIVE.value}
        total = self._schedules.count_documents(which, hint="list_state_v1", session=self._session)
        steps: list[Document] = [{"$match": which}, {"$project": {"_id": 1}}, {"$sample": {"size": size}}]
        rows = self._schedules.aggregate(steps, hint="list_state_v1", session=self._session)
        return total, [row["_id"] for row in rows]

    def read(self, ids: Sequence[str]) -> list[Schedule | CorruptSchedule]:
        """The schedules of these ids, without what they send."""
        which: Document = {"_id": {"$in": list(ids)}, "tenant": self._tenant} | READABLE
        rows = self._schedules.find(which, UNREAD, session=self._session).batch_size(max(1, len(ids)))
        return self._calendars.attach([read(without_request(row), self._secret_box) for row in rows])

    def waiting(self, buckets: Buckets, *, limit: int) -> tuple[list[Waiting], int]:
        """The events that fall due in the buckets; and how many were looked at, `limit` at most."""
        rows = list(
            self._events.aggregate(
                [
                    {"$match": _due(buckets.start, buckets.end, self._tenant)},
                    {"$limit": limit},
                    {
                        "$group": {
                            "_id": {
                                "bucket": {
                                    "$floor": {
                                        "$divide": [
                                            {"$subtract": ["$due_at", buckets.start]},
                                            buckets.width // _MILLISECOND,
                                        ]
                                    }
                                },
                                "origin": _ORIGIN,
                                "message": {"$eq": ["$kind", "message"]},
                            },
                            "count": {"$sum": 1},
                        }
                    },
                ],
                hint="due_v2",
                session=self._session,
            )
        )
        found = [
            Waiting(
                int(row["_id"]["bucket"]), row["_id"]["origin"], bool(row["_id"]["message"]), row["count"]
            )
            for row in rows
        ]
        return found, sum(each.count for each in found)

    def count(self, since: datetime, until: datetime, *, most: int) -> int:
        """How many events fall due in that time; no more than `most` are counted."""
        which = _due(since, until, self._tenant)
        return self._events.count_documents(which, hint="due_v2", limit=most, session=self._session)


def _due(since: datetime, until: datetime, tenant: str) -> Document:
    # What is an array is found like a date, until an inspection sets its event aside.
    when = {"$gte": since, "$lt": until, "$not": {"$type": "array"}}
    return {"state": _LIVING, "due_at": when, "tenant": tenant}
