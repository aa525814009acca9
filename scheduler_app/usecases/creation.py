"""How people make schedules: one, many at once, and again under the id of a deleted one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from scheduler_app.domain.draft import Draft
from scheduler_app.domain.errors import Conflict, InvalidField
from scheduler_app.domain.schedule import TENANT, Schedule, ScheduleState
from scheduler_app.domain.signing import Signing
from scheduler_app.store import Store
from scheduler_app.store.sealed_action import opened_draft
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.calendars import with_calendar

log = get_logger(__name__)

#: A schedule, and the seed of the request that makes it.
Seeded = tuple[Schedule, str | None]


@dataclass(frozen=True)
class Creation:
    """`soon` expands schedules and dispatches what is due within the horizon; it may fail quietly: beat does
    the same. `check_url` raises InvalidField for a URL that must not be called."""

    store: Store
    soon: Callable[[Sequence[Schedule], datetime], None]
    max_retries: int
    check_url: Callable[[str], None]
    new_secret: Callable[[], str]

    def create(
        self,
        draft: Draft,
        now: datetime,
        *,
        schedule_id: str | None = None,
        seed: str | None = None,
        hops: int = 0,
    ) -> Schedule:
        """Raises InvalidField, and Conflict when there is a schedule of that id.

        A request that may be begun again after a crash has a `seed`, which is the id unless one was chosen,
        and which stands on the schedule: what the first try has made is found then, and not made twice.
        `hops` are those of the request.
        """
        schedule = self._new(draft, schedule_id or seed or self.store.schedules.new_id(), now, hops)
        if not self.store.schedules.insert(schedule, seed=seed):
            successor = self._succeed([(schedule, seed)], now)[0]
            if successor is None:
                there = self._there(schedule.id, seed)
                if isinstance(there, Conflict):
                    raise there
                return there
            schedule = successor
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
        created = [each for position, (_, each) in enumerate(wanted) if position not in refused]
        again = [wanted[position] for position in sorted(refused)]
        seeded = [(each, seeds[number] if seeds else None) for number, each in again]
        for (number, schedule), (_, own), successor in zip(
            again, seeded, self._succeed(seeded, now), strict=True
        ):
            if successor is not None:
                created.append(successor)
            results[number] = successor or self._there(schedule.id, own)
        if created:
            log.info("schedules.created", message="Schedules were created in bulk", count=len(created))
            self.soon([each for each in created if each.state is ScheduleState.ACTIVE], now)
        return results

    def _new(self, draft: Draft, schedule_id: str, now: datetime, hops: int) -> Schedule:
        opened = with_calendar(opened_draft(draft, self.store.envelope), self.store, TENANT)
        schedule = opened.schedule(schedule_id, now, max_retries=self.max_retries)
        self.check_url(schedule.action.url)
        if hops:
            schedule = replace(schedule, hops=hops)
        return (
            replace(schedule, signing=Signing(self.new_secret(), now)) if draft.signing is True else schedule
        )

    def _succeed(self, wanted: Sequence[Seeded], now: datetime) -> list[Schedule | None]:
        """Makes those whose ids deleted schedules have; None for the others, and for what a request of the
        same seed has made before and somebody has deleted since: its owner does not want it any more."""
        if not wanted:
            return []
        left = self.store.successors.predecessors([schedule.id for schedule, _ in wanted])
        chosen: dict[str, int] = {}
        for position, (schedule, seed) in enumerate(wanted):
            deleted = left.get(schedule.id)
            if deleted is not None and (seed is None or deleted.seed != seed):
                # Of two of one id in a bulk the first one is made.
                chosen.setdefault(schedule.id, position)
        for schedule_id in chosen:
            # Whoever deleted it may have died before this write.
            self.store.withdrawals.cancel_all(
                schedule_id, left[schedule_id].revision, now, "Withdrawn: the schedule was deleted"
            )
        positions = list(chosen.values())
        pairs = [
            (schedule.succeeding(left[schedule.id]), left[schedule.id])
            for schedule, _ in (wanted[position] for position in positions)
        ]
        written = self.store.successors.replace(pairs, seeds=[wanted[position][1] for position in positions])
        made: list[Schedule | None] = [None] * len(wanted)
        for position, (schedule, _), won in zip(positions, pairs, written, strict=True):
            made[position] = schedule if won else None
        return made

    def _there(self, schedule_id: str, seed: str | None) -> Schedule | Conflict:
        """What an earlier try of the same request has made, or why the id is not to be had."""
        made = self.store.schedules.made_by(seed, schedule_id) if seed else None
        if made is not None:
            return made
        if self.store.schedules.get(schedule_id) is not None:
            return Conflict(
                f"there is a schedule {schedule_id} already: change it by PUT, or take another id"
            )
        return Conflict(
            f"the id {schedule_id} is not to be had: this very request made it before, and it was deleted"
            " since, or its stored document is corrupt; take another id, or another Idempotency-Key"
        )
