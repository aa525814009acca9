"""What people see of failures and do about them: causes with their events, what preceded them, dismissing."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.domain.audit import Change, difference_of
from scheduler_app.domain.cause import MAX_NAMED, Cause, CauseKind
from scheduler_app.domain.errors import Conflict, NotFound
from scheduler_app.domain.http_action import destination_of_key
from scheduler_app.domain.ids import WholeId, name_of
from scheduler_app.domain.states import State
from scheduler_app.domain.stored_fields import Corrupt
from scheduler_app.store import Store
from scheduler_app.store.causes import CauseListFilter
from scheduler_app.store.destinations import CorruptDestination
from scheduler_app.store.events.cause_marks import MarkCounts
from scheduler_app.store.events.events import EventRecord
from scheduler_app.store.events.lists import EventListFilter
from scheduler_app.store.paging import Page, PageRequest
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.deeds.events import DISMISSED

log = get_logger(__name__)

#: Waiting events and dead letters of a cause are counted up to this number.
MOST_COUNTED: Final = 1_000
#: Schedules with a tag that are looked for among those of a cause.
MOST_NARROWED: Final = 2_000
#: An edit within this time before the first failure may be why.
PRECEDING: Final = timedelta(minutes=10)
#: Schedules whose edits are looked at.
EDITED_LOOKED_AT: Final = 10
EVENTS_SHOWN: Final = 10
DISMISSED_AT_ONCE: Final = 500
#: Dead letters that one request expires; more are left for the next one.
DISMISSED_A_CALL: Final = 5_000


@dataclass(frozen=True, slots=True)
class PrecedingEdit:
    """An edit shortly before the first failure."""

    at: datetime
    what: str
    """`schedule` or `destination`."""
    name: str
    by: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class CauseReport:
    """A cause, and what is told of it beside that."""

    cause: Cause
    counts: MarkCounts
    events: Sequence[EventRecord] = ()
    """The newest of its dead letters, or the one that failed last."""
    preceded_by: PrecedingEdit | None = None


@dataclass(frozen=True)
class FailureService:
    store: Store

    def page(
        self, tenant: str, window: PageRequest, which: CauseListFilter, tags: Collection[str] = ()
    ) -> Page[CauseReport]:
        """A tenant's causes, those that began last first; with `tags`, what schedules with one of them show
        of those that touch them. Raises a STORE_FAULT."""
        found = self.store.causes.page(tenant, window, which)
        if tags:
            return Page(self._narrowed(tenant, found.rows, tags), found.next)
        keys = {cause.key.id for cause in found.rows if cause.key.kind is CauseKind.FAILING}
        counts = self.store.cause_marks.counts(sorted(keys), most=MOST_COUNTED)
        rows = [CauseReport(cause, counts.get(cause.key.id, MarkCounts())) for cause in found.rows]
        return Page(rows, found.next)

    def get(self, cause_id: str, tags: Collection[str] = ()) -> CauseReport:
        """With `tags`, what schedules with one of them show of it. Raises NotFound, also where it touches
        none of them, and Conflict for a document that cannot be read."""
        cause = self._stored(cause_id)
        if tags:
            for report in self._narrowed(cause.tenant, [cause], tags):
                events = self._events(report.cause, report.cause.schedules.names)
                return replace(report, events=events, preceded_by=self._edited_before(report.cause))
            raise _not_found(cause_id)
        counts = self.store.cause_marks.count(cause.key.id, most=MOST_COUNTED)
        return CauseReport(cause, counts, self._events(cause), self._preceded_by(cause))

    def dismiss(
        self, cause_id: str, now: datetime, *, by: str, note: str, events: bool
    ) -> tuple[CauseReport, int, bool]:
        """Takes a cause out of the verdict; with `events` its dead letters are expired, too, which may be
        said again while there are more. Returns the cause, how many were expired, and whether there are
        more. Raises NotFound, and Conflict where it is dismissed already."""
        before = self._stored(cause_id)
        if before.dismissed_at is None or not events:
            told = difference_of({}, {"note": note, "events": events})
            after = self.store.audit.change(
                Change("dismissed", "failure", WholeId(cause_id), told),
                lambda: self.store.causes.change(cause_id, lambda cause: cause.dismissed(now, by, note)),
            )
            if after is None:
                raise Conflict("the failure is changing too fast; try again")
            log.info("cause.dismissed", message="A person dismissed a failure", cause_id=cause_id)
        count = self._expire(before, now) if events else 0
        report = self.get(cause_id)
        return report, count, events and report.counts.dead > 0

    def _stored(self, cause_id: str) -> Cause:
        try:
            cause = self.store.causes.get(cause_id)
        except Corrupt as error:
            raise Conflict(f"the stored failure {name_of(cause_id)} cannot be read: {error}") from None
        if cause is None:
            raise _not_found(cause_id)
        return cause

    def _narrowed(self, tenant: str, causes: Sequence[Cause], tags: Collection[str]) -> list[CauseReport]:
        schedules = self.store.tags.schedules(tenant, sorted(tags), limit=MOST_NARROWED)
        touched = {cause.id: cause.touched_among(schedules) for cause in causes}
        shown = [cause for cause in causes if touched[cause.id]]
        failing: dict[str, list[str]] = {
            cause.key.id: touched[cause.id][:MAX_NAMED]
            for cause in shown
            if cause.key.kind is CauseKind.FAILING
        }
        counts = self.store.cause_marks.counts(failing, most=MOST_COUNTED, among=failing)
        reports = []
        for cause in shown:
            count = counts.get(cause.key.id, MarkCounts())
            seen = cause.narrowed(touched[cause.id], tags, waiting=count.waiting, dead=count.dead)
            reports.append(CauseReport(seen, count))
        return reports

    def _expire(self, cause: Cause, now: datetime) -> int:
        count = 0
        while count < DISMISSED_A_CALL:
            window = PageRequest(limit=DISMISSED_AT_ONCE)
            page = self.store.event_lists.page(
                cause.tenant, window, states={State.ERROR}, narrowing=EventListFilter(cause=cause.key.id)
            )
            ended = self.store.events.dismiss([event.id for event in page.rows], now, DISMISSED)
            count += ended
            if page.next is None or not ended:
                break
        return count

    def _events(self, cause: Cause, among: tuple[str, ...] | None = None) -> list[EventRecord]:
        if cause.key.kind is not CauseKind.FAILING:
            return []
        window, narrowing = PageRequest(limit=EVENTS_SHOWN), EventListFilter(cause=cause.key.id, among=among)
        found = self.store.event_lists.page(
            cause.tenant, window, states={State.ERROR}, narrowing=narrowing
        ).rows
        last = self.store.events.get(cause.event_id) if cause.event_id else None
        return found if last is None or any(each.id == last.id for each in found) else [last, *found]

    def _preceded_by(self, cause: Cause) -> PrecedingEdit | None:
        """The last edit of its schedules, or of the destination, shortly before it began."""
        found = [each for each in (self._edited_before(cause),) if each is not None]
        own_id = destination_of_key(cause.key.subject)
        destination = self.store.destinations.get(own_id) if own_id else None
        if destination is not None and not isinstance(destination, CorruptDestination):
            at = destination.updated_at
            if cause.since - PRECEDING <= at <= cause.since:
                found.append(PrecedingEdit(at, "destination", name_of(destination.id)))
        return max(found, key=lambda edit: edit.at, default=None)

    def _edited_before(self, cause: Cause) -> PrecedingEdit | None:
        """The last edit of its schedules shortly before it began."""
        window = PageRequest(limit=1, since=cause.since - PRECEDING, until=cause.since)
        found: list[PrecedingEdit] = []
        for schedule_id in cause.schedules.names[:EDITED_LOOKED_AT]:
            found += [
                PrecedingEdit(edit.at, "schedule", name_of(schedule_id), edit.by, edit.act.reason)
                for edit in self.store.audit.edits(window, schedule_id).rows
            ]
        return max(found, key=lambda edit: edit.at, default=None)


def _not_found(cause_id: str) -> NotFound:
    return NotFound(f"there is no failure {name_of(cause_id)}; it may be beyond the retention")
