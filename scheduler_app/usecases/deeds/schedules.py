"""What people do with schedules that exist: edit, pause, resume, trigger, delete.

Changes are written by version, with the cut of their events where the future changes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from scheduler_app.domain import event
from scheduler_app.domain.act import SCHEDULERS_OWN
from scheduler_app.domain.action import Action
from scheduler_app.domain.audit import Change, Difference, difference_of
from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound, stale_version
from scheduler_app.domain.event import Event
from scheduler_app.domain.ids import WholeId, name_of, tenant_of
from scheduler_app.domain.instants import check_storable
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.schedule import (
    MAX_OWED,
    PAUSED_BY_FAILURES,
    OwedRange,
    Pause,
    Schedule,
    ScheduleState,
)
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.store import Store
from scheduler_app.store.acting import acting, current_act
from scheduler_app.store.encryption import open_draft
from scheduler_app.store.events.cancellations import WITHDRAWN_BY_CHANGE, WITHDRAWN_BY_DELETION
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.store.schedules.schedules import DeletedSchedule
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.deeds.named import (
    KnownDestinations,
    check_named_destination,
    check_notified_destinations,
    deleted_destination_finder,
    with_calendar,
)
from scheduler_app.usecases.owed_events import hourly_peak
from scheduler_app.usecases.quotas import event_room, message_room

log = get_logger(__name__)

#: How often an edit is tried while other edits come in between.
TRIES = 20
TRIGGERED = "Triggered by a person"


class ExpandUntil(Protocol):
    """Makes the events that a schedule's rule still owes up to an instant, before an edit replaces the rule.

    Returns what is too much for one request: the edit leaves it to beats.
    """

    def __call__(self, schedule: Schedule, until: datetime) -> OwedRange | None: ...


class Describe(Protocol):
    """Tells what is about to be changed of a schedule, in the words of whoever shows it."""

    def __call__(self, what: str, before: Schedule, after: Schedule, now: datetime) -> Difference: ...


def tell_state(what: str, before: Schedule, after: Schedule, now: datetime) -> Difference:
    """For processes in which nobody edits schedules: they pause some."""
    was, will = (
        {"state": each.state.value, "note": each.pause.note if each.pause else None}
        for each in (before, after)
    )
    return difference_of(was, will)


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
    describe: Describe = tell_state

    def get(self, schedule_id: str, *, linearizable: bool = False) -> Schedule:
        """Raises NotFound, and Conflict for one whose document can no longer be read.

        `linearizable`: as it is at this moment, and not as the majority knew it a moment ago.
        """
        schedule = self.store.schedules.get(schedule_id, linearizable=linearizable)
        if schedule is None:
            raise NotFound(f"there is no schedule {name_of(schedule_id)}")
        if isinstance(schedule, CorruptSchedule) and schedule.readable_elsewhere:
            raise Conflict(
                f"{name_of(schedule_id)} cannot be read by this process: {schedule.reason}. Run the API with"
                " the SECRETS_KEY and the release of the other processes"
            )
        if isinstance(schedule, CorruptSchedule):
            raise Conflict(
                f"the stored document of {name_of(schedule_id)} is corrupt: {schedule.reason}. Mend that"
                " field in MongoDB and then resume the schedule, or delete it and create it again under"
                " another id"
            )
        return self.store.last_runs.attach([schedule])[0]

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

        changed = self._write(schedule_id, now, edited, version, "edited")
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

        return self._write(schedule_id, now, paused, version, "paused")

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

        with acting(SCHEDULERS_OWN):
            changed = self._write(failing.id, now, paused, None, "paused")
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

        return self._write(schedule_id, now, resumed, version, "resumed")

    def delete(self, schedule_id: str, now: datetime, *, version: int | None = None) -> None:
        """Withdraws everything unsent; the history stays readable. Raises NotFound, StaleVersion."""
        deleted = delete_with_line(self.store, schedule_id, now, version=version)
        if deleted is None:
            try:
                existing = self.get(schedule_id, linearizable=True)
            except NotFound:
                # A previous delete may have crashed after its first write, or MongoDB have refused its
                # second.
                for before in self.store.successors.predecessors([schedule_id]).values():
                    self._withdraw_all(schedule_id, before.revision, now)
                raise
            raise stale_version("schedule", existing.version, version)
        withdrawn = self._withdraw_all(schedule_id, deleted.revision, now)
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

        changed = self._write(schedule_id, now, signed, version, "signed")
        return changed.signing or signing(None)

    def unsign(self, schedule_id: str, now: datetime, *, version: int | None = None) -> Schedule:
        """Removes the signing secrets. Raises NotFound, StaleVersion, Conflict."""

        def unsigned(schedule: Schedule) -> Schedule:
            return replace(next_version(schedule, now), signing=None) if schedule.signing else schedule

        return self._write(schedule_id, now, unsigned, version, "unsigned")

    def trigger(
        self, schedule_id: str, now: datetime, *, request_seed: str | None = None, hops: int = 0
    ) -> Event:
        """Calls the callback at once, whatever the rule or the state; once for a `request_seed`, as in
        `Creation.create`.
        `hops` are those of the request. Raises NotFound, Conflict, QuotaExceeded."""
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
        limit = current_act().limits.messages_per_day
        if limit is None:
            self.store.events.insert([made], now, TRIGGERED)
        else:
            self._trigger_within(limit, made, now)
        log.info(
            "schedule.triggered", message="An event was triggered", schedule_id=schedule_id, event_id=made.id
        )
        self.dispatch([made], now)
        return made

    def _trigger_within(self, limit: int, made: Event, now: datetime) -> None:
        """Stores the event, if there is room for it or an earlier try has made it. Raises QuotaExceeded."""
        with message_room(self.store, made.tenant, limit, 1, now) as room:
            if room.refusal and not self.store.events.get(made.id):
                raise room.refusal
            room.made = self.store.events.insert([made], now, TRIGGERED)

    def _write(
        self,
        schedule_id: str,
        now: datetime,
        change: Callable[[Schedule], Schedule],
        version: int | None,
        done: str,
    ) -> Schedule:
        """Writes what `change` makes of the schedule, and cuts its events where that begins a revision.
        Raises QuotaExceeded where it owes more than there is room for.

        Nothing is written where `change` returns the schedule itself. `version` is the one that the caller
        has read, None for any; `done` is the verb for the log and the audit. Raises NotFound,
        StaleVersion, and Conflict when others change the schedule all the time.
        """
        for _ in range(TRIES):
            schedule = self.get(schedule_id)
            if version is not None and version != schedule.version:
                # A primary that was just elected may not know yet how far the majority is: what it gives may
                # be older than the edit whose ETag this caller was given.
                schedule = self.get(schedule_id, linearizable=True)
                if version != schedule.version:
                    raise stale_version("schedule", schedule.version, version)
            changed = change(schedule)
            if changed is schedule:
                if schedule.cut_pending:
                    # A previous call may have crashed after its first write, or MongoDB have refused the
                    # second.
                    self._cut(schedule, now)
                return schedule
            left_to_beats = None
            if changed.revision != schedule.revision:
                # What the old rule owes up to the cut must exist before the rule is gone, or be kept with
                # that rule by the write that replaces it: beats may be away.
                left_to_beats = self.expand_until(schedule, changed.revised_at)
                if left_to_beats is not None and len(schedule.owed) >= MAX_OWED:
                    raise Conflict(
                        f"beats have not yet made up what the last {MAX_OWED} changes left to them; try again"
                        " in some seconds, and see by `scheduler doctor` that a beat runs"
                    )
            limit = current_act().limits.events_per_hour
            if limit is None or changed.revision == schedule.revision:
                written = self._written(schedule, changed, left_to_beats, done, now)
            else:
                written = self._written_within(limit, schedule, changed, left_to_beats, done, now)
            if written:
                log.info(
                    f"schedule.{done}",
                    message=f"A schedule was {done}",
                    schedule_id=schedule_id,
                    version=changed.version,
                    revision=changed.revision,
                )
                if left_to_beats is not None:
                    log.info(
                        "schedule.owes",
                        message="Beats make up what was owed from before a change",
                        schedule_id=schedule_id,
                        owed_from=left_to_beats.next_run_at.isoformat(),
                        owed_until=left_to_beats.until.isoformat(),
                    )
                if changed.revision != schedule.revision:
                    self._cut(changed, now)
                return changed
        raise Conflict("the schedule is being changed by others at this moment; try again")

    def _written_within(
        self,
        limit: int,
        before: Schedule,
        after: Schedule,
        owed: OwedRange | None,
        done: str,
        now: datetime,
    ) -> bool:
        """As `_written`, if there is room for what the schedule owes more from now on. Raises
        QuotaExceeded."""
        more = max(0, hourly_peak(after) - hourly_peak(before))
        if not more:
            return self._written(before, after, owed, done, now)
        with event_room(self.store, after.tenant, limit, more, now) as room:
            written = room.refusal is None and self._written(before, after, owed, done, now)
            room.made = more if written else 0
        if room.refusal is not None:
            raise room.refusal
        return written

    def _written(
        self, before: Schedule, after: Schedule, owed: OwedRange | None, done: str, now: datetime
    ) -> bool:
        """False when another edit came first."""
        schedules, version = self.store.schedules, before.version
        is_same_future = after.revision == before.revision
        if not is_same_future:
            schedules.keep_revision(after.id)

        def write() -> bool:
            if is_same_future:
                return schedules.update(after, version=version)
            return schedules.revise(after, version=version, owed=owed)

        told = self.describe(done, before, after, now)
        change = Change(done, "schedule", WholeId(after.id), told, after.version)
        return self.store.audit.change(change, write)

    def _cut(self, schedule: Schedule, now: datetime) -> None:
        self.store.cancellations.cancel_past_cut(
            schedule.id,
            schedule.revision,
            schedule.revised_at,
            now,
            WITHDRAWN_BY_CHANGE,
        )
        if schedule.state is ScheduleState.ACTIVE:
            self.expand_and_dispatch([schedule], now)

    def _withdraw_all(self, schedule_id: str, revision: int, now: datetime) -> int:
        return self.store.cancellations.cancel_all(schedule_id, revision, now, WITHDRAWN_BY_DELETION)


def delete_with_line(
    store: Store, schedule_id: str, now: datetime, *, version: int | None = None
) -> DeletedSchedule | None:
    """`Schedules.delete` with its line, and those that its document still has: it is written over where the
    same id is used again. The line keeps the name, which nothing else does once the document is gone."""

    def write() -> DeletedSchedule | None:
        store.audit_chain.move_owed(limit=1, ids=[schedule_id])
        return store.schedules.delete(schedule_id, now, version=version)

    def change(deleted: DeletedSchedule) -> Change:
        told = Difference({"name": deleted.name}) if deleted.name else Difference()
        return Change("deleted", "schedule", WholeId(schedule_id), told)

    return store.audit.change(change, write)


def next_version(schedule: Schedule, now: datetime) -> Schedule:
    return replace(schedule, version=schedule.version + 1, updated_at=now)


def check_pause_end(until: datetime | None, now: datetime) -> None:
    """Raises InvalidField for the end of a pause that has passed, or that no document can hold."""
    if until is None:
        return
    if until <= now:
        raise InvalidField("until", "has passed; give an instant in the future")
    check_storable(until, "until")
