"""How people make schedules: one, many at once, again under the id of a deleted one, and by PUT.

PUT is as HTTP has it: a schedule is changed, or created where there is none.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from scheduler_app.domain.action import Action
from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound, QuotaExceeded, StaleVersion
from scheduler_app.domain.ids import SEPARATOR, name_of, tenant_of, whole_id
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.schedule import Pause, Schedule, ScheduleState
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.domain.triggers import ONE_OF, names_a_trigger
from scheduler_app.store import Store
from scheduler_app.store.acting import current_act
from scheduler_app.store.encryption import open_draft
from scheduler_app.store.events.cancellations import WITHDRAWN_BY_DELETION
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.deeds.named import (
    KnownCalendars,
    KnownDestinations,
    calendar_named,
    check_named_destination,
    check_notified_destinations,
    deleted_destination_finder,
    destination_deleted_error,
    with_calendar,
)
from scheduler_app.usecases.deeds.schedules import TRIES, ScheduleService, delete_with_line
from scheduler_app.usecases.quotas import CreationRoom, creation_room

log = get_logger(__name__)

#: What the page of such a schedule says.
PAUSED_BY_IMPORT: Final = "imported: resume it when the other installation sends nothing of it any more"
#: A schedule, and the request_seed of the request that makes it.
SeededSchedule = tuple[Schedule, str | None]
#: A schedule, and its place among those that a request asks for.
NumberedSchedule = tuple[int, Schedule]
#: Why a schedule of many was not made.
CreationRefusal = InvalidField | Conflict | QuotaExceeded


@dataclass(frozen=True)
class Creation:
    """How people make schedules.

    `expand_and_dispatch` expands schedules and dispatches what is due within the horizon; its failures are
    ignored, because the next tick does the same work. `check_action` raises InvalidField for an action that
    this deployment does not execute.
    """

    store: Store
    expand_and_dispatch: Callable[[Sequence[Schedule], datetime], None]
    max_retries: int
    check_action: Callable[[Action], None]
    new_secret: Callable[[], str]

    def new_seed(self) -> str:
        """A fresh seed for a request that a person may send twice; ids made of them rise with time."""
        return self.store.schedules.new_name()

    def create(
        self,
        tenant: str,
        draft: ScheduleDraft,
        now: datetime,
        *,
        schedule_id: str | None = None,
        request_seed: str | None = None,
        hops: int = 0,
    ) -> Schedule:
        """Makes a tenant's schedule. `schedule_id` is the one that was chosen.

        A request that may be begun again after a crash has a `request_seed`. It becomes the id, unless one
        was chosen, and is stored with the schedule: what the first try has made is found by it, and not made
        twice. `hops` are those of the request.

        Raises InvalidField, Conflict when there is a schedule of that id, and QuotaExceeded.
        """
        known: KnownDestinations = {}
        schedule = self._new(draft, self._id(tenant, schedule_id, request_seed), now, hops, known)
        with self._room(tenant, [schedule], now) as room:
            made = None if room.refusals else self._inserted(schedule, request_seed, now)
            room.made = [] if made is None else [made.id]
        if made is None:
            # What an earlier try of this request made is its answer, whether there is room or not.
            existing = self._existing_or_conflict(schedule.id, request_seed)
            for refusal in room.refusals.values() if isinstance(existing, Conflict) else ():
                raise refusal
            if isinstance(existing, Conflict):
                raise existing
            return existing
        schedule = made
        for error in self._undone([schedule], known, now).values():
            raise error
        log.info("schedule.created", message="A schedule was created", schedule_id=schedule.id)
        if schedule.state is ScheduleState.ACTIVE:
            self.expand_and_dispatch([schedule], now)
        return schedule

    def _room(
        self, tenant: str, schedules: Sequence[Schedule], now: datetime
    ) -> AbstractContextManager[CreationRoom]:
        """Room for so many more schedules, and for what they owe."""
        limits = current_act().limits
        if limits.schedules is None and limits.events_per_hour is None:
            return nullcontext(CreationRoom())
        return creation_room(self.store, tenant, limits, schedules, now)

    def _inserted(self, schedule: Schedule, request_seed: str | None, now: datetime) -> Schedule | None:
        """The schedule as it was stored; None where another one has its id."""
        if self.store.schedules.insert(schedule, request_seed=request_seed):
            return schedule
        return self._succeed([(schedule, request_seed)], now)[0]

    def adopt(self, schedule: Schedule, now: datetime, *, active: bool) -> bool:
        """Stores a schedule that another installation had, with its revision and how far it had come there.
        One that was active goes on from there if it is to be `active`, and is paused otherwise. False where
        there is one of its id. Raises InvalidField, QuotaExceeded, and Conflict where the id is that of a
        deleted one, whose history would be this one's."""
        if self.store.schedules.living([schedule.id]):
            return False
        if self.store.schedules.exists(schedule.id):
            raise Conflict(
                "a schedule of this id was deleted, and its history is kept: it can be made by hand"
            )
        known: KnownDestinations = {}
        if schedule.calendar is not None:
            calendar_named(whole_id(schedule.tenant, schedule.calendar.name), self.store)
            attached = self.store.calendars.attached_use(schedule.calendar, schedule.tenant)
            schedule = replace(schedule, calendar=attached.up_to_date())
        self.check_action(schedule.action)
        check_named_destination(self.store, schedule.action, known)
        check_notified_destinations(self.store, schedule.tenant, schedule, known)
        schedule.recurrence()
        if schedule.state is ScheduleState.ACTIVE and not active:
            schedule = schedule.revise(now, state=ScheduleState.PAUSED, pause=Pause(note=PAUSED_BY_IMPORT))
        with self._room(schedule.tenant, [schedule], now) as room:
            made = None if room.refusals else self._inserted(schedule, None, now)
            room.made = [] if made is None else [made.id]
        for refusal in room.refusals.values():
            raise refusal
        if made is None:
            return False
        for error in self._undone([schedule], known, now).values():
            raise error
        if schedule.state is ScheduleState.ACTIVE:
            self.expand_and_dispatch([schedule], now)
        return True

    def create_many(
        self,
        tenant: str,
        drafts: Sequence[tuple[str | None, ScheduleDraft]],
        now: datetime,
        *,
        request_seed: str | None = None,
        hops: int = 0,
    ) -> list[Schedule | CreationRefusal]:
        """`create` for many at once: for each its schedule, or the error that `create` would raise."""
        results: list[Schedule | CreationRefusal] = []
        known: KnownDestinations = {}
        calendars: KnownCalendars = {}
        request_seeds = (
            [f"{request_seed}-{number}" for number in range(len(drafts))] if request_seed else None
        )
        for number, (chosen, draft) in enumerate(drafts):
            try:
                own_id = self._id(tenant, chosen, request_seeds[number] if request_seeds else None)
                results.append(self._new(draft, own_id, now, hops, known, calendars))
            except InvalidField as error:
                results.append(error)
        wanted = [(number, each) for number, each in enumerate(results) if isinstance(each, Schedule)]
        with self._room(tenant, [schedule for _, schedule in wanted], now) as room:
            for place, refusal in room.refusals.items():
                results[wanted[place][0]] = refusal
            wanted = [each for place, each in enumerate(wanted) if place not in room.refusals]
            created = self._inserted_many(wanted, results, request_seeds, now)
            room.made = {each.id for each in created}
        if undone := self._undone(created, known, now):
            created = [each for each in created if each.id not in undone]
            for number, each in enumerate(results):
                if isinstance(each, Schedule) and each.id in undone:
                    results[number] = undone[each.id]
        if created:
            log.info("schedules.created", message="Schedules were created in bulk", count=len(created))
            self.expand_and_dispatch([each for each in created if each.state is ScheduleState.ACTIVE], now)
        return results

    def _inserted_many(
        self,
        wanted: Sequence[NumberedSchedule],
        results: list[Schedule | CreationRefusal],
        request_seeds: Sequence[str] | None,
        now: datetime,
    ) -> list[Schedule]:
        """Those that were stored. What became of those whose ids were taken is put into `results`."""
        refused = self.store.schedules.insert_many(
            [schedule for _, schedule in wanted],
            request_seeds=[request_seeds[number] for number, _ in wanted] if request_seeds else None,
        )
        created = [each for position, (_, each) in enumerate(wanted) if position not in refused]
        again = [wanted[position] for position in sorted(refused)]
        seeded = [(each, request_seeds[number] if request_seeds else None) for number, each in again]
        for (number, schedule), (_, own), successor in zip(
            again, seeded, self._succeed(seeded, now), strict=True
        ):
            if successor is not None:
                created.append(successor)
            results[number] = successor or self._existing_or_conflict(schedule.id, own)
        return created

    def _id(self, tenant: str, chosen: str | None, request_seed: str | None) -> str:
        """The id that was chosen, or one made of the request's seed, or a fresh one. Raises InvalidField for
        a name that no id can have, and for an id of another tenant."""
        if chosen is not None and chosen != whole_id(tenant, name_of(chosen)):
            raise InvalidField("id", "names another tenant")
        if chosen is not None and SEPARATOR in name_of(chosen):
            raise InvalidField("id", f"must not have a {SEPARATOR!r} in it: that sets a tenant's name apart")
        return chosen or whole_id(tenant, request_seed or self.store.schedules.new_name())

    def _new(
        self,
        draft: ScheduleDraft,
        schedule_id: str,
        now: datetime,
        hops: int,
        known: KnownDestinations | None = None,
        calendars: KnownCalendars | None = None,
    ) -> Schedule:
        opened = open_draft(draft, self.store.secret_box)
        opened = with_calendar(tenant_of(schedule_id), opened, self.store, calendars)
        schedule = opened.schedule(schedule_id, now, max_retries=self.max_retries)
        self.check_action(schedule.action)
        check_named_destination(self.store, schedule.action, known)
        check_notified_destinations(self.store, schedule.tenant, schedule, known)
        if hops:
            schedule = replace(schedule, hops=hops)
        return (
            replace(schedule, signing=Signing(self.new_secret(), now)) if draft.signing is True else schedule
        )

    def _undone(
        self, created: Sequence[Schedule], known: KnownDestinations, now: datetime
    ) -> dict[str, InvalidField]:
        """Deletes those schedules again that name a destination which was deleted meanwhile; returns why, by
        their ids."""
        errors: dict[str, InvalidField] = {}
        deleted = deleted_destination_finder(self.store, known)
        for schedule in created:
            if field := deleted(schedule, schedule.tenant):
                delete_with_line(self.store, schedule.id, now)
                errors[schedule.id] = destination_deleted_error(field)
        return errors

    def _succeed(self, wanted: Sequence[SeededSchedule], now: datetime) -> list[Schedule | None]:
        """Makes those schedules whose ids deleted ones have.

        None stands for the others, and for what a request of the same seed has made before and somebody has
        deleted since: its owner does not want it any more.
        """
        if not wanted:
            return []
        predecessors = self.store.successors.predecessors([schedule.id for schedule, _ in wanted])
        chosen: dict[str, int] = {}
        for position, (schedule, request_seed) in enumerate(wanted):
            deleted = predecessors.get(schedule.id)
            if deleted is not None and (request_seed is None or deleted.request_seed != request_seed):
                # Where two of a bulk have one id, the first is made.
                chosen.setdefault(schedule.id, position)
        for schedule_id in chosen:
            # The process that deleted it may have died before this write.
            self.store.cancellations.cancel_all(
                schedule_id,
                predecessors[schedule_id].revision,
                now,
                WITHDRAWN_BY_DELETION,
            )
        positions = list(chosen.values())
        pairs = [
            (schedule.succeeding(predecessors[schedule.id]), predecessors[schedule.id])
            for schedule, _ in (wanted[position] for position in positions)
        ]
        written = self.store.successors.replace(
            pairs, request_seeds=[wanted[position][1] for position in positions]
        )
        successors: list[Schedule | None] = [None] * len(wanted)
        for position, (schedule, _), won in zip(positions, pairs, written, strict=True):
            successors[position] = schedule if won else None
        return successors

    def _existing_or_conflict(self, schedule_id: str, request_seed: str | None) -> Schedule | Conflict:
        """The schedule that an earlier try of the same request has made, or why the id cannot be used."""
        made = self.store.schedules.made_by(request_seed, schedule_id) if request_seed else None
        if made is not None:
            return made
        if self.store.schedules.get(schedule_id) is not None:
            return Conflict(
                f"there is a schedule {name_of(schedule_id)} already: change it by PUT, or take another id"
            )
        return Conflict(
            f"the id {name_of(schedule_id)} is not to be had: this very request made it before, and it was"
            " deleted since, or its stored document is corrupt; take another id, or another Idempotency-Key"
        )


@dataclass(frozen=True, slots=True)
class Preconditions:
    """The conditions of a change or a creation."""

    version: int | None = None
    """The version that the schedule must have; None for any."""
    present: bool = False
    """Whether there must be a schedule."""
    absent: bool = False
    """Whether the id must be free."""


def put_schedule(
    creation: Creation,
    manager: ScheduleService,
    schedule_id: str,
    draft: ScheduleDraft,
    now: datetime,
    *,
    conditions: Preconditions,
    hops: int = 0,
) -> tuple[Schedule, bool]:
    """The schedule, and whether it was created. Raises StaleVersion where `conditions` are not met, NotFound
    where there is no schedule and the draft lacks fields that a new one needs, InvalidField, Conflict."""
    name = name_of(schedule_id)
    for _ in range(TRIES):
        try:
            if conditions.absent:
                manager.get(schedule_id)
                raise StaleVersion(f"there is a schedule {name} already, and the request forbids that")
            return manager.edit(schedule_id, draft, now, version=conditions.version, hops=hops), False
        except NotFound:
            if conditions.present or conditions.version is not None:
                raise StaleVersion(f"If-Match asks for a schedule {name}, and there is none") from None
        missing = _missing_fields(draft)
        if missing:
            raise NotFound(
                f"there is no schedule {name} to change; to create it, give {', '.join(missing)} too"
            )
        try:
            return creation.create(
                tenant_of(schedule_id), draft, now, schedule_id=schedule_id, hops=hops
            ), True
        except Conflict:
            # Another request may have created it a moment ago: then it is changed.
            if creation.store.schedules.get(schedule_id) is None:
                raise
    raise Conflict(f"the schedule {name} is being created and deleted by others at this moment; try again")


def _missing_fields(draft: ScheduleDraft) -> list[str]:
    missing = ["name"] if draft.name is NOT_GIVEN else []
    if draft.action is NOT_GIVEN and draft.url is NOT_GIVEN and draft.destination in (NOT_GIVEN, None):
        missing.append("callback_url, destination or action")
    timed = draft.trigger is not NOT_GIVEN and names_a_trigger(draft.trigger)
    return missing if timed else [*missing, f"one of {ONE_OF}"]
