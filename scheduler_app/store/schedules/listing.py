"""Which schedules a list is asked for: what an index tells of it, and what is looked for in its rows."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from scheduler_app.domain.event import State
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.store.indexes import BY_NEXT_RUN
from scheduler_app.store.mongo import Document
from scheduler_app.store.paging import RowFilter, lower


class Choice(NamedTuple):
    """Filters of a list of schedules; all that are given must match."""

    state: str | None = None
    name: str | None = None
    """The whole name."""
    tag: str | None = None
    last_outcome: str | None = None
    destination: str | None = None
    """The id of one."""
    text: str | None = None
    """A part of the name, whatever the case of its letters."""


#: Newest or oldest first, by name, or by the next run, which active schedules alone have.
Order = Literal["newest", "oldest", "name", "next"]


class Listing(NamedTuple):
    """A query, the index that answers it, and what is looked for among what that leaves."""

    which: Document
    hint: str
    row_filter: RowFilter | None


def listing(tenant: str, choice: Choice, order: Order = "newest") -> Listing:
    """The tenant's schedules that are chosen. One filter is told by an index, if the index that has the
    order can."""
    wanted = {
        "tags": choice.tag,
        "name": choice.name,
        "last_run.outcome": choice.last_outcome,
        "state": choice.state,
    }
    given = {field: value for field, value in wanted.items() if value is not None}
    which, hint, best = _indexed(tenant, given, order)
    fits: list[Document] = [_has(field, value) for field, value in given.items() if field != best]
    if choice.state is None and "state" not in which:
        fits.append({"$ne": ["$state", ScheduleState.DELETED.value]})
    if choice.destination is not None:
        fits.append({"$eq": ["$action.destination", {"$literal": choice.destination}]})
    if choice.text is not None:
        named = {"$toLower": {"$cond": [{"$eq": [{"$type": "$name"}, "string"]}, "$name", ""]}}
        fits.append({"$gte": [{"$indexOfCP": [named, {"$literal": lower(choice.text)}]}, 0]})
    return Listing(which, hint, RowFilter({"$and": fits}) if fits else None)


def _has(field: str, value: str) -> Document:
    """An expression, true where the field has the value; that of tags has several."""
    if field == "tags":
        several = {"$cond": [{"$isArray": "$tags"}, "$tags", []]}
        return {"$in": [{"$literal": value}, several]}
    return {"$eq": [f"${field}", {"$literal": value}]}


def _indexed(tenant: str, given: Mapping[str, str], order: Order) -> tuple[Document, str, str | None]:
    """What an index tells, that index, and which filter is among it."""
    if order == "next":
        # In any other state there is no next run, and nothing to look through.
        active = ScheduleState.ACTIVE.value
        state: object = active if given.get("state", active) == active else {"$in": []}
        return {"tenant": tenant, "state": state}, BY_NEXT_RUN, None
    if order == "name":
        return {"tenant": tenant}, "list_name_v1", None
    best = next((field for field in given if field in _INDEXES and _is_indexed(field, given)), None)
    which: Document = {"tenant": tenant} | ({best: given[best]} if best else {})
    return which, _INDEXES[best] if best else "list_v1", best


#: The most selective first: few schedules share a tag or a name, and most are in one state.
_INDEXES = {
    "tags": "list_tag_v1",
    "name": "list_name_v1",
    "last_run.outcome": "list_outcome_v1",
    "state": "list_state_v1",
}


def _is_indexed(field: str, given: Mapping[str, str]) -> bool:
    """Whether an index answers the filter. That of outcomes has all but success, which most schedules
    have."""
    return field != "last_run.outcome" or given[field] > State.COMPLETED
