"""Lists of events, newest run time first."""

from collections.abc import Collection
from typing import Any

from scheduler_app.domain.event import LIVING, State
from scheduler_app.store.event_types import sound
from scheduler_app.store.listing import Page, Window, newest
from scheduler_app.store.mongo import Document, Mongo


class EventLists:
    """Reads only. No index has every state: it would be written at each transition of each event. What is in
    `error` has its own, and so has what is to come of a schedule; the other states are looked for among what
    the other filters leave."""

    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")

    def page(
        self,
        window: Window,
        *,
        tenant: str,
        schedule_id: str | None = None,
        states: Collection[State] | None = None,
    ) -> Page[Document]:
        """Events of a schedule, or of all; in these states, or in any. The window's times are run times.

        What is wrong in a corrupt one is left out (see `sound`).
        """
        found = self._page(window, tenant, schedule_id, states)
        return Page(list(map(sound, found.rows)), found.following)

    def _page(
        self, window: Window, tenant: str, schedule_id: str | None, states: Collection[State] | None
    ) -> Page[Document]:
        rest: dict[str, Any] | None = {"state": {"$in": sorted(states)}} if states is not None else None
        if schedule_id is not None and states is not None and LIVING.issuperset(states):
            living: dict[str, Any] = {"schedule_id": schedule_id, "due_at": {"$exists": True}}
            return newest(self._events, "run_time", living, window, rest=rest, hint="pending_v1")
        if schedule_id is not None:
            return newest(self._events, "run_time", {"schedule_id": schedule_id}, window, rest=rest)
        if states is not None and set(states) == {State.ERROR}:
            which = {"state": State.ERROR.value, "tenant": tenant}
            return newest(self._events, "run_time", which, window, hint="dead_v2")
        return newest(self._events, "run_time", {"tenant": tenant}, window, rest=rest)
