"""What a schedule owed in an hour: each of its revisions names instants, up to the cut that ended it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from scheduler_app.domain.ids import event_id, tenant_of, whole_id
from scheduler_app.domain.ledger import HOUR
from scheduler_app.domain.stored_fields import instant, optional, text, whole
from scheduler_app.witness.closed_days import closed_days
from scheduler_app.witness.evaluator import OwedRule, Unjudged

#: Gives a calendar's document by its id and the number of its days; None where it is not known any more.
FindCalendar = Callable[[str, int], Mapping[str, Any] | None]
#: The `run_at` that stands for a schedule that only runs on demand.
_NEVER_YEAR: Final = 9998
_ACTIVE: Final = ("active", "finished")


@dataclass(frozen=True, slots=True)
class OwedOccurrence:
    """An instant that a revision names."""

    id: str
    """The id that its event must have."""
    revision: int
    instant: datetime
    is_owed: bool
    """False beyond the cut that ended the revision: an event that had been sent by then is explained, and one
    that was withdrawn or never made is not missing."""
    may_be_withdrawn: bool = False
    """Whether the schedule was deleted after it: what was not sent by then was withdrawn."""


def owed_in(
    row: Mapping[str, Any], ended: Sequence[Mapping[str, Any]], hour: datetime, find_calendar: FindCalendar
) -> list[OwedOccurrence]:
    """What the schedule of the document `row` and its `ended` revisions, oldest first, name in the hour.
    Raises Unjudged, and Corrupt."""
    found: list[OwedOccurrence] = []
    own_id = text(row["_id"], "_id")
    for each, end in _with_ends(row, ended):
        begin = instant(each.get("revised_at"), "revised_at")
        # What was planned beyond a cut lies at most a timeframe after it, and may have been sent.
        if begin >= hour + HOUR or (end is not None and end < hour - HOUR):
            continue
        deleted = optional(instant, each.get("deleted_at"), "deleted_at")
        revision = whole(each.get("revision"), "revision", least=1)
        for moment in _instants(each, own_id, hour, find_calendar):
            if moment <= begin:
                continue
            found.append(
                OwedOccurrence(
                    event_id(own_id, revision, moment),
                    revision,
                    moment,
                    end is None or moment <= end,
                    deleted is not None,
                )
            )
    return found


def _with_ends(
    row: Mapping[str, Any], ended: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], datetime | None]]:
    """Revisions with the instants that end them: the beginning of the next one, or when it was set aside or
    deleted."""
    current = whole(row.get("revision"), "revision", least=1)
    revisions = [each for each in ended if whole(each.get("revision"), "revision") < current] + [row]
    for number, each in enumerate(revisions):
        ends = [optional(instant, each.get("deleted_at"), "deleted_at")]
        if each.get("state") == "error":
            ends.append(instant(each.get("updated_at"), "updated_at"))
        if number + 1 < len(revisions):
            ends.append(instant(revisions[number + 1].get("revised_at"), "revised_at"))
        known = [end for end in ends if end is not None]
        yield each, min(known) if known else None


def _instants(
    row: Mapping[str, Any], own_id: str, hour: datetime, find_calendar: FindCalendar
) -> list[datetime]:
    """What the rule of one revision names in the hour."""
    if row.get("state") not in (*_ACTIVE, "error", "deleted"):
        return []
    at = optional(instant, row.get("run_at"), "run_at")
    if at is not None and row.get("pinned") is None:
        return [at] if hour <= at < hour + HOUR and at.year < _NEVER_YEAR else []
    pinned = text(row.get("pinned"), "pinned")
    is_closed = None
    if (name := optional(text, row.get("calendar"), "calendar")) is not None:
        version = whole(row.get("calendar_days"), "calendar_days")
        calendar = find_calendar(whole_id(tenant_of(own_id), name), version)
        if calendar is None:
            raise Unjudged(f"the days that its calendar {name} had are not known any more")
        is_closed = closed_days(calendar)
    rule = OwedRule(
        pinned,
        text(row.get("gap"), "gap"),
        text(row.get("overlap"), "overlap"),
        is_closed,
        str(row.get("on_holiday") or "skip"),
    )
    return rule.instants(hour, hour + HOUR)
