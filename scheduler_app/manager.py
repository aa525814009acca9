"""What people do with schedules: create, edit, pause, resume, trigger, delete."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from scheduler_app.callback import new_secret
from scheduler_app.domain import event
from scheduler_app.domain.draft import NOT_GIVEN, Draft
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound, StaleVersion
from scheduler_app.domain.event import Event
from scheduler_app.domain.origin import origin_of
from scheduler_app.domain.owed import MAX_OWED, OwedRange
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.signing import Signing
from scheduler_app.store import Store
from scheduler_app.store.sealed_action import opened_action
from scheduler_app.store.unreadable import Unreadable
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

#: How often an edit is tried when somebody else's comes in between.
TRIES = 20


class Owed(Protocol):
    """Makes what a schedule's rule still owes up to an instant, before an edit replaces it; what is too much
    for a request is returned, for the edit to leave it to beats."""

    def __call__(self, schedule: Schedule, until: datetime) -> OwedRange | None: ...


@dataclass(frozen=True)
class Manager:
    """`owed` expands up to an instant; `soon` expands schedules and dispatches what is due within the
    horizon; `send` dispatches events at once. The last two may fail quietly: beat does the same."""

    store: Store
    owed: Owed
    soon: Callable[[Sequence[Schedule], datetime], None]
    send: Callable[[Sequence[Event], datetime], None]
    max_retries: int

    def create(
        self,
        draft: Draft,
        now: datetime,
        *,
        schedule_id: str | None = None,
        seed: str | None = None,
        hops: int = 0,
    ) -> Schedule:
        """Raises InvalidField, and Conflict when the id was used before.

        A request that may be begun again after a crash has a `seed`, which is the id unless one was chosen,
        and which stands on the schedule: what the first try has made is found then, and not made twice.
        `hops` are those of the request.
        """
        schedule = self._new(draft, schedule_id or seed or self.store.schedules.new_id(), now, hops)
        if not self.store.schedules.insert(schedule, seed=seed):
            there = self.store.schedules.made_by(seed, schedule.id) if seed else None
            if there is None:
                raise _used_before(schedule.id)
            return there
        log.info("schedule.created", message="A schedule was created", schedule_id=schedule.id)
        if schedule.state is ScheduleState.ACTIVE:
            self.soon([schedule], now)
        return schedule

    def create_many(
        self,
        drafts: Sequence[tuple[str | None, Draft]],
        now: datetime,
        *,
        seed: str | None = None,
        hops: int = 0,
    ) -> list[Schedule | InvalidField | Conflict]:
        """`create` for many at once: for each its schedule, or the error that `create` would raise."""
        results: list[Schedule | InvalidField | Conflict] = []
        seeds = [f"{seed}-{number}" for number in range(len(drafts))] if seed else None
        for number, (chosen, draft) in enumerate(drafts):
            made = chosen or (seeds[number] if seeds else self.store.schedules.new_id())
            try:
                results.append(self._new(draft, made, now, hops))
            except InvalidField as error:
                results.append(error)
        wanted = [(number, each) for number, each in enumerate(results) if isinstance(each, Schedule)]
        refused = self.store.schedules.insert_many(
            [schedule for _, schedule in wanted],
            seeds=[seeds[number] for number, _ in wanted] if seeds else None,
        )
        for position in refused:
            number, schedule = wanted[position]
            # What is there already may have been made by the first try of this very request.
            there = self.store.schedules.made_by(seeds[number], schedule.id) if seeds else None
            results[number] = there or _used_before(schedule.id)
        created = [each for position, (_, each) in enumerate(wanted) if position not in refused]
        if created:
            log.info("schedules.created", message="Schedules were created in bulk", count=len(created))
            self.soon([each for each in created if each.state is ScheduleState.ACTIVE], now)
        return results

    def _new(self, draft: Draft, schedule_id: str, now: datetime, hops: int) -> Schedule:
        schedule = self._opened(draft).schedule(schedule_id, now, max_retries=self.max_retries)
        if hops:
            schedule = replace(schedule, hops=hops)
        return replace(schedule, signing=Signing(new_secret(), now)) if draft.signing is True else schedule

    def _opened(self, draft: Draft) -> Draft:
        """With the secrets of an export in reach of the draft's masks. Raises InvalidField("sealed")."""
        if draft.sealed is NOT_GIVEN:
            return draft
        return replace(draft, known=opened_action(draft.sealed, self.store.envelope))

    def get(self, schedule_id: str, *, surely: bool = False) -> Schedule:
        """Raises NotFound, and Conflict for one whose document can no longer be read. `surely`: as it is now,
        and not as the majority knew it a moment ago."""
        schedule = self.store.schedules.get(schedule_id, surely=surely)
        if schedule is None:
            raise NotFound(f"there is no schedule {schedule_id}")
        if isinstance(schedule, Unreadable) and schedule.readable_elsewhere:
            raise Conflict(
                f"{schedule_id} cannot be read by this process: {schedule.reason}. Run the API with the"
                " SECRETS_KEY and the release of the other processes"
            )
        if isinstance(schedule, Unreadable):
            raise Conflict(
                f"the stored document of {schedule_id} is corrupt: {schedule.reason}. Mend that field in"
                " MongoDB and then resume the schedule, or delete it and create it anew under another id"
            )
        return schedule

    def edit(
        self, schedule_id: str, draft: Draft, now: datetime, *, version: int | None = None, hops: int = 0
    ) -> Schedule:
        """`hops` are those of the request: a callback that sets its own schedule again has no end either.
        Raises NotFound, InvalidField, and StaleVersion when `version` is not the schedule's."""

        opened = self._opened(draft)

        def edited(schedule: Schedule) -> Schedule:
            changed = opened.edit(schedule, now)
            if changed is schedule or hops <= schedule.hops:
                return changed
            return replace(changed, hops=hops)

        return self._change(schedule_id, now, edited, version, "edited")

    def pause(self, schedule_id: str, now: datetime, *, version: int | None = None) -> Schedule:
        """A cut, after which no occurrence is made. Raises NotFound, StaleVersion, Conflict."""

        def paused(schedule: Schedule) -> Schedule:
            if schedule.state is ScheduleState.PAUSED:
                return schedule
            if schedule.state is ScheduleState.FINISHED:
                raise Conflict("the schedule is finished; there is nothing to pause")
            return _next_version(schedule, now).revise(now, state=ScheduleState.PAUSED)

        return self._change(schedule_id, now, paused, version, "paused")

    def resume(self, schedule_id: str, now: datetime, *, version: int | None = None) -> Schedule:
        """Occurrences after now are made again. Raises NotFound, StaleVersion, Conflict, InvalidField."""

        def resumed(schedule: Schedule) -> Schedule:
            if schedule.state is ScheduleState.ACTIVE:
                return schedule
            if schedule.state is ScheduleState.FINISHED:
                raise Conflict("the schedule is finished; give it a new rule by PUT")
            return _next_version(schedule, now).revise(now, state=ScheduleState.ACTIVE)

        return self._change(schedule_id, now, resumed, version, "resumed")

    def delete(self, schedule_id: str, now: datetime, *, version: int | None = None) -> None:
        """Withdraws everything unsent; the history stays readable. Raises NotFound, StaleVersion."""
        if not self.store.schedules.delete(schedule_id, now, version=version):
            try:
                there = self.get(schedule_id, surely=True)
            except NotFound:
                # Deleted before, perhaps by one who died, or was refused by MongoDB, after that write.
                self._withdraw_all(schedule_id, now)
                raise
            raise _stale(there, version)
        withdrawn = self._withdraw_all(schedule_id, now)
        log.info(
            "schedule.deleted", message="A schedule was deleted", schedule_id=schedule_id, withdrawn=withdrawn
        )

    def sign(
        self, schedule_id: str, now: datetime, *, overlap: timedelta, version: int | None = None
    ) -> Signing:
        """Makes a signing secret; one that is there signs beside it for `overlap`. Raises NotFound,
        StaleVersion, Conflict."""

        secret = new_secret()

        def signing(old: Signing | None) -> Signing:
            return old.rotated(secret, now, overlap) if old else Signing(secret, now)

        def signed(schedule: Schedule) -> Schedule:
            return replace(_next_version(schedule, now), signing=signing(schedule.signing))

        changed = self._change(schedule_id, now, signed, version, "signed")
        return changed.signing or signing(None)

    def unsign(self, schedule_id: str, now: datetime, *, version: int | None = None) -> Schedule:
        """Forgets the signing secrets. Raises NotFound, StaleVersion, Conflict."""

        def unsigned(schedule: Schedule) -> Schedule:
            return replace(_next_version(schedule, now), signing=None) if schedule.signing else schedule

        return self._change(schedule_id, now, unsigned, version, "unsigned")

    def trigger(self, schedule_id: str, now: datetime, *, seed: str | None = None, hops: int = 0) -> Event:
        """Calls the callback at once, whatever the rule or the state; once for a `seed`, as in `create`.
        `hops` are those of the request. Raises NotFound, Conflict."""
        schedule = self.get(schedule_id)
        made = event.manual(
            schedule.id, schedule.revision, now, seed, origin=origin_of(schedule.action.url), hops=hops
        )
        self.store.events.insert([made], now, "Triggered by a person")
        log.info(
            "schedule.triggered", message="An event was triggered", schedule_id=schedule_id, event_id=made.id
        )
        self.send([made], now)
        return made

    def _change(
        self,
        schedule_id: str,
        now: datetime,
        change: Callable[[Schedule], Schedule],
        version: int | None,
        done: str,
    ) -> Schedule:
        for _ in range(TRIES):
            schedule = self.get(schedule_id)
            if version is not None and version != schedule.version:
                # A primary that was just elected may not know yet how far the majority is: what it gives may
                # be older than the edit whose ETag this caller was given.
                schedule = self.get(schedule_id, surely=True)
                if version != schedule.version:
                    raise _stale(schedule, version)
            changed = change(schedule)
            if changed is schedule:
                if schedule.cut_pending:
                    # Whoever asked before may have died, or been refused by MongoDB, after the first write.
                    self._cut(schedule, now)
                return schedule
            left = None
            if changed.revision == schedule.revision:
                written = self.store.schedules.update(changed, version=schedule.version)
            else:
                # What the old rule owes up to the cut must exist before the rule is gone, or be kept with
                # that rule by the write that replaces it: beats may be away.
                left = self.owed(schedule, changed.revised_at)
                if left is not None and len(schedule.owed) >= MAX_OWED:
                    raise Conflict(
                        f"beats have not yet made up what the last {MAX_OWED} changes left to them; try again"
                        " in some seconds, and see by `scheduler doctor` that a beat runs"
                    )
                written = self.store.schedules.revise(changed, version=schedule.version, owed=left)
            if written:
                log.info(
                    f"schedule.{done}",
                    message=f"A schedule was {done}",
                    schedule_id=schedule_id,
                    version=changed.version,
                    revision=changed.revision,
                )
                if left is not None:
                    log.info(
                        "schedule.owes",
                        message="Beats make up what was owed from before a change",
                        schedule_id=schedule_id,
                        owed_from=left.next_run_at.isoformat(),
                        owed_until=left.until.isoformat(),
                    )
                if changed.revision != schedule.revision:
                    self._cut(changed, now)
                return changed
        raise Conflict("the schedule is being changed by others at this moment; try again")

    def _withdraw_all(self, schedule_id: str, now: datetime) -> int:
        return self.store.withdrawals.cancel_all(schedule_id, now, "Withdrawn: the schedule was deleted")

    def _cut(self, schedule: Schedule, now: datetime) -> None:
        self.store.withdrawals.cancel_past_cut(
            schedule.id, schedule.revision, schedule.revised_at, now, "Withdrawn: the schedule was changed"
        )
        if schedule.state is ScheduleState.ACTIVE:
            self.soon([schedule], now)


def _next_version(schedule: Schedule, now: datetime) -> Schedule:
    return replace(schedule, version=schedule.version + 1, updated_at=now)


def _used_before(schedule_id: str) -> Conflict:
    return Conflict(f"the id {schedule_id} was used before; an id is never used twice")


def _stale(schedule: Schedule, version: int | None) -> StaleVersion:
    return StaleVersion(
        f"the schedule is at version {schedule.version}, not {version}: read it again, and send the ETag that"
        " you are given"
    )
