"""What people do with schedules that exist: edit, pause, resume, trigger, delete.

They pause, resume or delete many at once, too: all that match a filter, page by page.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from scheduler_app.domain import event
from scheduler_app.domain.action import Action
from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound, StaleVersion
from scheduler_app.domain.event import Event
from scheduler_app.domain.ids import tenant_of
from scheduler_app.domain.instants import check_storable
from scheduler_app.domain.not_given import NOT_GIVEN
from scheduler_app.domain.schedule import PAUSED_BY_FAILURES, Pause, Schedule, ScheduleState
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.store import Store
from scheduler_app.store.encryption import open_draft
from scheduler_app.store.paging import Page, Position
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.deeds.calendars import with_calendar
from scheduler_app.usecases.deeds.named_destinations import (
    KnownDestinations,
    check_named_destination,
    check_notified_destinations,
    deleted_destination_finder,
)
from scheduler_app.usecases.schedule_revisions import (
    WITHDRAWN_BY_DELETION,
    ExpandUntil,
    OnEdit,
    ScheduleChanges,
    get_schedule,
    ignore_edit,
    next_version,
    stale_version,
)

log = get_logger(__name__)


@dataclass(frozen=True)
class ScheduleService:
    """What people do with schedules that exist.

    `expand_until` makes what a rule still owes up to an instant; `expand_and_dispatch` expands schedules and
    dispatches what is due within the horizon; `dispatch` dispatches events at once. Failures of the last two
    are ignored: the next tick does the same work. `check_action` raises InvalidField for an action
    that this deployment does not execute.
    """

    store: Store
    expand_until: ExpandUntil
    expand_and_dispatch: Callable[[Sequence[Schedule], datetime], None]
    dispatch: Callable[[Sequence[Event], datetime], None]
    check_action: Callable[[Action], None]
    new_secret: Callable[[], str]
    on_edit: OnEdit = ignore_edit

    @property
    def _changes(self) -> ScheduleChanges:
        return ScheduleChanges(self.store, self.expand_until, self.expand_and_dispatch, self.on_edit)

    def get(self, schedule_id: str, *, linearizable: bool = False) -> Schedule:
        """Raises NotFound, and Conflict for one whose document can no longer be read.

        `linearizable`: as it is at this moment, and not as the majority knew it a moment ago.
        """
        return get_schedule(self.store, schedule_id, linearizable=linearizable)

    def living(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids of which there is a schedule, deleted ones aside."""
        return self.store.schedules.living(ids)

    def would_change(self, schedule: Schedule, draft: ScheduleDraft, now: datetime) -> bool:
        """Whether `edit` would write something. Raises InvalidField."""
        named = with_calendar(schedule.tenant, draft, self.store)
        is_signed = schedule.signing is not None
        return named.edit(schedule, now) is not schedule or draft.signing not in (NOT_GIVEN, is_signed)

    def edit(
        self,
        schedule_id: str,
        draft: ScheduleDraft,
        now: datetime,
        *,
        version: int | None = None,
        hops: int = 0,
    ) -> Schedule:
        """`hops` are those of the request: a callback that sets its own schedule again has no end either.
        Raises NotFound, InvalidField, and StaleVersion when `version` is not the schedule's. Nothing is
        written where nothing changes."""
        opened = open_draft(draft, self.store.secret_box)
        opened = with_calendar(tenant_of(schedule_id), opened, self.store)

        known: KnownDestinations = {}

        def edited(schedule: Schedule) -> Schedule:
            known.clear()
            changed = opened.edit(schedule, now)
            if changed.action.isolation_key != schedule.action.isolation_key:
                self.check_action(changed.action)
            if changed.action != schedule.action:
                check_named_destination(self.store, changed.action, known)
            if (changed.on_success, changed.on_failure) != (schedule.on_success, schedule.on_failure):
                check_notified_destinations(self.store, changed.tenant, changed, known)
            if draft.signing not in (NOT_GIVEN, schedule.signing is not None):
                changed = next_version(schedule, now) if changed is schedule else changed
                changed = replace(changed, signing=Signing(self.new_secret(), now) if draft.signing else None)
            if changed is schedule or hops <= schedule.hops:
                return changed
            return replace(changed, hops=hops)

        changed = self._changes.write(schedule_id, now, edited, version, "edited")
        if known and (field := deleted_destination_finder(self.store, known)(changed, changed.tenant)):
            raise Conflict(
                f"the schedule was changed, but the destination that it names in {field} was deleted at this"
                " moment: give it another one"
            )
        return changed

    def pause(
        self,
        schedule_id: str,
        now: datetime,
        *,
        version: int | None = None,
        note: str | None = None,
        until: datetime | None = None,
    ) -> Schedule:
        """Makes a cut, after which the schedule has no occurrences, before `until` where that is given. Of
        one that is paused already, the end is moved: None takes it away; a note that is not given stays.
        Raises NotFound, InvalidField, StaleVersion, Conflict."""
        check_pause_end(until, now)

        def paused(schedule: Schedule) -> Schedule:
            if schedule.state is ScheduleState.PAUSED:
                known = schedule.pause or Pause()
                pause = replace(known, note=note or known.note, until=until)
                if pause == known:
                    return schedule
                return replace(next_version(schedule, now), pause=pause)
            if schedule.state is ScheduleState.FINISHED:
                raise Conflict("the schedule is finished; there is nothing to pause")
            pause = Pause(note=note, until=until)
            return next_version(schedule, now).revise(now, state=ScheduleState.PAUSED, pause=pause)

        return self._changes.write(schedule_id, now, paused, version, "paused")

    def pause_for_failures(self, failing: Schedule, now: datetime, *, note: str) -> Schedule | None:
        """Pauses a schedule as it was judged: None if it was paused, resumed or edited since, by others or
        by a worker that has judged the same. A pause is not an edit: its version stays. Raises NotFound,
        Conflict."""
        made: Schedule | None = None

        def paused(schedule: Schedule) -> Schedule:
            nonlocal made
            same = (schedule.revision, schedule.version) == (failing.revision, failing.version)
            if not same or schedule.state is not ScheduleState.ACTIVE:
                made = None
                return schedule
            made = schedule.revise(now, state=ScheduleState.PAUSED, pause=Pause(PAUSED_BY_FAILURES, note))
            return made

        changed = self._changes.write(failing.id, now, paused, None, "paused")
        return made if changed is made else None

    def resume(
        self, schedule_id: str, now: datetime, *, version: int | None = None, hops: int = 0
    ) -> Schedule:
        """Occurrences after now are made again; `hops` as in `edit`. Raises NotFound, StaleVersion, Conflict,
        InvalidField."""

        def resumed(schedule: Schedule) -> Schedule:
            if schedule.state is ScheduleState.ACTIVE:
                return schedule
            if schedule.state is ScheduleState.FINISHED:
                raise Conflict("the schedule is finished; give it a new rule by PUT")
            active = next_version(schedule, now).revise(now, state=ScheduleState.ACTIVE)
            return replace(active, hops=max(hops, schedule.hops))

        return self._changes.write(schedule_id, now, resumed, version, "resumed")

    def delete(self, schedule_id: str, now: datetime, *, version: int | None = None) -> None:
        """Withdraws everything unsent; the history stays readable. Raises NotFound, StaleVersion."""
        revision = self.store.schedules.delete(schedule_id, now, version=version)
        if revision is None:
            try:
                there = self.get(schedule_id, linearizable=True)
            except NotFound:
                # A previous delete may have crashed after its first write, or MongoDB have refused its
                # second.
                for deleted in self.store.successors.predecessors([schedule_id]).values():
                    self._withdraw_all(schedule_id, deleted.revision, now)
                raise
            raise stale_version(there, version)
        self.on_edit(schedule_id, "deleted", None, None, now)
        withdrawn = self._withdraw_all(schedule_id, revision, now)
        log.info(
            "schedule.deleted", message="A schedule was deleted", schedule_id=schedule_id, withdrawn=withdrawn
        )

    def sign(
        self,
        schedule_id: str,
        now: datetime,
        *,
        overlap: timedelta,
        version: int | None = None,
    ) -> Signing:
        """Makes a signing secret; one that is there signs beside it for `overlap`. Raises NotFound,
        StaleVersion, Conflict."""

        secret = self.new_secret()

        def signing(old: Signing | None) -> Signing:
            return old.rotated(secret, now, overlap) if old else Signing(secret, now)

        def signed(schedule: Schedule) -> Schedule:
            return replace(next_version(schedule, now), signing=signing(schedule.signing))

        changed = self._changes.write(schedule_id, now, signed, version, "signed")
        return changed.signing or signing(None)

    def unsign(self, schedule_id: str, now: datetime, *, version: int | None = None) -> Schedule:
        """Removes the signing secrets. Raises NotFound, StaleVersion, Conflict."""

        def unsigned(schedule: Schedule) -> Schedule:
            return replace(next_version(schedule, now), signing=None) if schedule.signing else schedule

        return self._changes.write(schedule_id, now, unsigned, version, "unsigned")

    def trigger(
        self, schedule_id: str, now: datetime, *, request_seed: str | None = None, hops: int = 0
    ) -> Event:
        """Calls the callback at once, whatever the rule or the state; once for a `request_seed`, as in
        `Creation.create`.
        `hops` are those of the request. Raises NotFound, Conflict."""
        schedule = self.get(schedule_id)
        made = event.manual(
            schedule.id,
            schedule.revision,
            now,
            request_seed,
            origin=schedule.action.isolation_key,
            queue=schedule.queue,
            hops=hops,
        )
        self.store.events.insert([made], now, "Triggered by a person")
        log.info(
            "schedule.triggered", message="An event was triggered", schedule_id=schedule_id, event_id=made.id
        )
        self.dispatch([made], now)
        return made

    def _withdraw_all(self, schedule_id: str, revision: int, now: datetime) -> int:
        return self.store.cancellations.cancel_all(schedule_id, revision, now, WITHDRAWN_BY_DELETION)


def check_pause_end(until: datetime | None, now: datetime) -> None:
    """Raises InvalidField for the end of a pause that has passed, or that no document can hold."""
    if until is None:
        return
    if until <= now:
        raise InvalidField("until", "has passed; give an instant in the future")
    check_storable(until, "until")


#: A page ends after this many seconds, finished or not: its caller continues with the next page.
PAGE_SECONDS = 5.0


class BulkAction(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class EditedPage:
    """The result for a page of schedules: how many were edited, and the others' ids with the reasons."""

    count: int
    skipped: list[tuple[str, str]]
    next: Position | None


def edit_page(
    manager: ScheduleService,
    verb: BulkAction,
    page: Page[Schedule | CorruptSchedule],
    now: datetime,
    *,
    hops: int = 0,
    pause: Mapping[str, Any] | None = None,
    seconds: float = PAGE_SECONDS,
) -> EditedPage:
    """Does `verb` to each schedule of a page, except those that cannot be edited.

    Repeating it is harmless: schedules that were edited are skipped then. After `seconds`, the rest of the
    page is left to the next page. `hops` are those of the request; `pause` is the `note` and `until` of
    pauses. Raises InvalidField for an `until` that has passed.
    """
    count, skipped, end = 0, list[tuple[str, str]](), time.monotonic() + seconds
    check_pause_end((pause or {}).get("until"), now)
    for each in page.rows:
        schedule_id = each.schedule_id if isinstance(each, CorruptSchedule) else each.id
        reason = _refusal_by_state(verb, each) or _refusal(manager, verb, schedule_id, now, hops, pause or {})
        if reason is None:
            count += 1
        else:
            skipped.append((schedule_id, reason))
        if time.monotonic() > end and isinstance(each, Schedule) and each is not page.rows[-1]:
            return EditedPage(count, skipped, Position(each.created_at, each.id))
    return EditedPage(count, skipped, page.next)


def _refusal_by_state(verb: BulkAction, schedule: Schedule | CorruptSchedule) -> str | None:
    """Why a schedule is not edited, as far as its listed state tells; None if it may be."""
    if verb is BulkAction.DELETE:
        return None
    if isinstance(schedule, CorruptSchedule):
        return f"its stored document is unreadable: {schedule.reason}"
    there = ScheduleState.PAUSED if verb is BulkAction.PAUSE else ScheduleState.ACTIVE
    return f"it is {schedule.state}" if schedule.state in (there, ScheduleState.FINISHED) else None


def _refusal(
    manager: ScheduleService,
    verb: BulkAction,
    schedule_id: str,
    now: datetime,
    hops: int,
    pause: Mapping[str, Any],
) -> str | None:
    try:
        match verb:
            case BulkAction.PAUSE:
                manager.pause(schedule_id, now, **pause)
            case BulkAction.RESUME:
                manager.resume(schedule_id, now, hops=hops)
            case BulkAction.DELETE:
                manager.delete(schedule_id, now)
    except (Conflict, InvalidField, NotFound, StaleVersion) as error:
        return str(error)
    return None
