"""New schedules under the ids of deleted ones, whose documents stay until their last event is gone."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pymongo import ReplaceOne

from scheduler_app.domain.schedule import Predecessor, Schedule, ScheduleState
from scheduler_app.domain.stored_fields import Corrupt, instant, items, optional, text, whole
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.ended_revisions import EndedRevisions
from scheduler_app.store.mongo import BY_ID, Document, Mongo, new_token
from scheduler_app.store.schedules.documents import READABLE, read_cut, to_schedule_document
from scheduler_app.store.schedules.owed_lines import created_lines

_PREDECESSOR_FIELDS = dict.fromkeys(("revision", "version", "revised_at", "cuts", "seed"), 1)


class Successors:
    def __init__(self, mongo: Mongo, secret_box: SecretBox) -> None:
        self._schedules = mongo.collection("schedules")
        self._majority = mongo.majority("schedules")
        self._secret_box = secret_box
        self._ended = EndedRevisions(mongo)

    def predecessors(self, ids: Sequence[str]) -> dict[str, Predecessor]:
        """What the deleted schedules of these ids leave; nothing for one whose document cannot be read."""
        which = {"_id": {"$in": list(ids)}, "state": ScheduleState.DELETED.value}
        found: dict[str, Predecessor] = {}
        for row in self._majority.find(which | READABLE, _PREDECESSOR_FIELDS, hint=BY_ID):
            with suppress(Corrupt):
                found[row["_id"]] = _predecessor(row)
        return found

    def replace(
        self, wanted: Sequence[tuple[Schedule, Predecessor]], *, request_seeds: Sequence[str | None]
    ) -> list[bool]:
        """Writes each schedule over its predecessor, by one bulk; False where something else came first.

        Read back by a token: a bulk says how many it replaced, and not which.
        """
        if not wanted:
            return []
        token, lines = new_token(), created_lines(made for made, _ in wanted)
        self._ended.keep([made.id for made, _ in wanted])
        self._schedules.bulk_write(
            [
                ReplaceOne(
                    {
                        "_id": made.id,
                        "state": ScheduleState.DELETED.value,
                        "revision": deleted.revision,
                        "version": deleted.version,
                    },
                    to_schedule_document(made, self._secret_box)
                    | {"incarnation": token, "unlogged": [line]}
                    | ({} if request_seed is None else {"seed": request_seed}),
                )
                for (made, deleted), line, request_seed in zip(wanted, lines, request_seeds, strict=True)
            ],
            ordered=False,
        )
        which: dict[str, Any] = {"_id": {"$in": [made.id for made, _ in wanted]}, "incarnation": token}
        won = {row["_id"] for row in self._majority.find(which, {"_id": 1}, hint=BY_ID)}
        return [made.id in won for made, _ in wanted]


def _predecessor(row: Document) -> Predecessor:
    """Raises Corrupt."""
    return Predecessor(
        revision=whole(row.get("revision"), "revision", least=1),
        version=whole(row.get("version"), "version", least=1),
        revised_at=instant(row.get("revised_at"), "revised_at"),
        cuts=tuple([read_cut(each) for each in items(row.get("cuts") or [], "cuts")]),
        request_seed=optional(text, row.get("seed"), "seed"),
    )
