"""The tags that schedules have, by the index of their lists."""

from collections.abc import Sequence
from typing import Final

from scheduler_app.store.indexes import BY_TAG
from scheduler_app.store.mongo import Document, Mongo
from scheduler_app.store.schedules.schedules import NOT_DELETED

#: Above every other character: the end of what begins with a text.
LAST: Final = "\U0010ffff"


class Tags:
    """Reads only. Each tag costs a look into the index, however many schedules have it."""

    def __init__(self, mongo: Mongo) -> None:
        self._schedules = mongo.collection("schedules")

    def in_order(self, tenant: str, *, limit: int, prefix: str = "", after: str = "") -> list[str]:
        """The first `limit` tags that begin with the prefix, in their order, after the one that is given."""
        found: list[str] = []
        least = {"$gt": after} if after >= prefix else {"$gte": prefix}
        while len(found) < limit:
            row = self._schedules.find_one({"tenant": tenant, "tags": least}, {"tags": 1}, hint=BY_TAG)
            # The index has each tag of a schedule by itself: the row is that of the next one.
            tags = [
                tag
                for tag in (row or {}).get("tags", ())
                if isinstance(tag, str) and _is_at_least(tag, least)
            ]
            if not tags or not min(tags).startswith(prefix):
                break
            found.append(min(tags))
            least = {"$gt": found[-1]}
        return found

    def schedules(self, tenant: str, tags: Sequence[str], *, limit: int) -> list[str]:
        """The ids of the schedules with one of these tags, `limit` at most, deleted ones aside."""
        which: Document = {"tenant": tenant, "tags": {"$in": list(tags)}, "state": NOT_DELETED}
        rows = self._schedules.find(which, {"_id": 1}, hint=BY_TAG).limit(limit)
        return [row["_id"] for row in rows if isinstance(row["_id"], str)]

    def count(self, tenant: str, tag: str, *, most: int) -> int:
        """How many schedules have it, `most` at most, deleted ones aside."""
        which: Document = {"tenant": tenant, "tags": tag, "state": NOT_DELETED}
        return self._schedules.count_documents(which, hint=BY_TAG, limit=most)


def _is_at_least(tag: str, least: dict[str, str]) -> bool:
    return tag > least["$gt"] if "$gt" in least else tag >= least["$gte"]
