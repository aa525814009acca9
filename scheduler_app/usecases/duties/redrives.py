"""Redrives that people ask for and beats carry out: all dead letters of a failure at a rate, the newest one
of each schedule, or when the receiver answers again.
"""

import hashlib
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from scheduler_app.config import EXPAND_LEASE_SECONDS
from scheduler_app.domain.cause import Cause, CauseKind
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound
from scheduler_app.domain.event import Event
from scheduler_app.domain.ids import name_of, whole_id
from scheduler_app.domain.redrive import (
    LETTERS_A_PAGE,
    MAX_NEWEST,
    MAX_PLANNED,
    MAX_REDRIVES,
    PLANNED_SHOWN,
    Redrive,
    RedriveChoice,
    RedriveState,
    RedriveTime,
)
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.states import Kind, State
from scheduler_app.domain.stored_fields import Corrupt
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.events.events import EventRecord
from scheduler_app.store.events.lists import EventListFilter
from scheduler_app.store.paging import PageRequest, Position
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.deeds.events import REDRIVEN, hopeless_reason

log = get_logger(__name__)

REDRIVES_A_PAGE = 5
#: Pages of one dry run.
PLANNED_PAGES = MAX_PLANNED // LETTERS_A_PAGE


_BEGINS = {RedriveTime.NOW: RedriveState.RUNNING, RedriveTime.RECEIVER_ANSWERS: RedriveState.WAITING}


@dataclass(frozen=True, slots=True)
class RedriveAsked:
    """A request for a redrive."""

    cause_id: str | None
    choice: RedriveChoice
    time: RedriveTime
    rate_per_second: float | None
    schedule_id: str | None = None
    tag: str | None = None
    origin: str | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class RedrivePlan:
    """What a redrive would do."""

    redrive: Redrive
    shown: Sequence[EventRecord]
    """The first dead letters that it would send."""


@dataclass(frozen=True)
class RedriveService:
    store: Store

    def plan(self, tenant: str, asked: RedriveAsked, now: datetime) -> RedrivePlan:
        """Counts what would be sent. Raises NotFound for a failure that is not there, InvalidField for one
        that has no dead letters."""
        cause = self._cause(asked)
        made = Redrive(
            id=whole_id(tenant, secrets.token_hex(8)),
            cause=cause.key.id if cause else None,
            choice=asked.choice,
            time=asked.time,
            rate_per_second=asked.rate_per_second,
            schedule_id=asked.schedule_id,
            tag=asked.tag,
            origin=asked.origin,
            before=min(asked.until or now, now),
            state=_BEGINS[asked.time],
            next_due_at=now,
            started_at=now,
        )
        selection = _Selection(self.store, made, now)
        shown, newest, count = list[EventRecord](), dict[str, str](), 0
        after: Position | None = None
        for _ in range(PLANNED_PAGES):
            page = selection.page(after, LETTERS_A_PAGE)
            for event in page.chosen:
                if asked.choice is RedriveChoice.NEWEST:
                    if event.schedule_id in newest or len(newest) >= MAX_NEWEST:
                        continue
                    newest[event.schedule_id or event.id] = event.id
                count += 1
                if len(shown) < PLANNED_SHOWN:
                    shown.append(event)
            after = page.next
            if after is None:
                break
        return RedrivePlan(replace(made, planned=count, newest=tuple(newest.values())), shown)

    def start(
        self, tenant: str, asked: RedriveAsked, now: datetime, *, request_seed: str | None = None
    ) -> Redrive:
        """Stores what beats then do; once for a `request_seed`. Raises as `plan`, and Conflict while the
        tenant has as many at work as it may have."""
        own_id = None
        if request_seed is not None:
            own_id = whole_id(tenant, hashlib.sha256(request_seed.encode()).hexdigest()[:16])
            if (found := self.store.redrives.get(own_id)) is not None:
                return found
        if self.store.redrives.running(tenant, most=MAX_REDRIVES) >= MAX_REDRIVES:
            raise Conflict(f"{MAX_REDRIVES} redrives are at work; wait for one to end, or stop one")
        made = self.plan(tenant, asked, now).redrive
        made = replace(made, id=own_id or made.id)
        self.store.redrives.start(made)
        log.info(
            "redrive.started",
            message="A person asked for a redrive",
            redrive_id=made.id,
            cause=made.cause,
            planned=made.planned,
        )
        return made

    def get(self, redrive_id: str) -> Redrive:
        """Raises NotFound, and Conflict for a document that cannot be read."""
        try:
            found = self.store.redrives.get(redrive_id)
        except Corrupt as error:
            raise Conflict(f"the stored redrive {name_of(redrive_id)} cannot be read: {error}") from None
        if found is None:
            raise NotFound(f"there is no redrive {name_of(redrive_id)}; it may be beyond the retention")
        return found

    def stop(self, redrive_id: str, now: datetime) -> Redrive:
        """Sends nothing more; what is due again already is sent. Raises NotFound."""
        self.get(redrive_id)
        if self.store.redrives.stop(redrive_id, now):
            log.info("redrive.stopped", message="A person stopped a redrive", redrive_id=redrive_id)
        return self.get(redrive_id)

    def _cause(self, asked: RedriveAsked) -> Cause | None:
        if asked.cause_id is None:
            if asked.time is RedriveTime.RECEIVER_ANSWERS:
                raise InvalidField("cause", "is missing: it says which receiver is waited for")
            return None
        cause = self.store.causes.get(asked.cause_id)
        if cause is None:
            raise NotFound(f"there is no failure {name_of(asked.cause_id)}")
        if cause.key.kind is not CauseKind.FAILING:
            raise InvalidField("cause", f"is {cause.key.kind}: only a failing receiver has dead letters")
        return cause


@dataclass(frozen=True, slots=True)
class _Letters:
    """A page of dead letters: those that are sent, and how many are not."""

    chosen: Sequence[EventRecord]
    skipped: int
    last: EventRecord | None
    next: Position | None


class _Selection:
    """Finds the dead letters that a redrive sends."""

    def __init__(self, store: Store, redrive: Redrive, now: datetime) -> None:
        self._store = store
        self._redrive = redrive
        self._now = now

    def page(self, after: Position | None, limit: int) -> _Letters:
        redrive = self._redrive
        found = self._store.event_lists.page(
            redrive.tenant,
            PageRequest(limit=limit, after=after, until=redrive.before),
            schedule_id=redrive.schedule_id,
            states={State.ERROR},
            narrowing=EventListFilter(origin=redrive.origin, tag=redrive.tag, cause=redrive.cause),
        )
        return self._chosen(found.rows, found.next)

    def of_ids(self, ids: Collection[str]) -> _Letters:
        rows = self._store.events.records(ids)
        return self._chosen([row for row in rows if row.state is State.ERROR], None)

    def _chosen(self, rows: Sequence[EventRecord], following: Position | None) -> _Letters:
        schedules = self._store.schedules.for_delivery(list({row.schedule_id for row in rows} - {""}))
        chosen = [row for row in rows if self._is_chosen(row, schedules)]
        return _Letters(chosen, len(rows) - len(chosen), rows[-1] if rows else None, following)

    def _is_chosen(self, row: EventRecord, schedules: Mapping[str, Schedule | CorruptSchedule]) -> bool:
        if row.kind is Kind.MESSAGE:
            return True
        schedule = schedules.get(row.schedule_id)
        if hopeless_reason(row, schedule) is not None:
            return False
        if self._redrive.choice is not RedriveChoice.NOT_TOO_LATE or not isinstance(schedule, Schedule):
            return True
        return not is_too_late(row, schedule, self._now)


def is_too_late(row: EventRecord, schedule: Schedule, now: datetime) -> bool:
    """Whether the policies of its schedule would give an event up if it were sent for the first time now."""
    if not schedule.lateness.judges:
        return False
    event = Event(row.id, row.schedule_id, row.revision, row.run_time, row.run_time, row.kind)

    def later() -> datetime | None:
        following = schedule.recurrence().after(row.run_time)
        return following if following is not None and following <= now else None

    return schedule.lateness.expiry(event, now, later) is not None


class RedriveDuty:
    """Makes dead letters due again; any number of beats may do it at once."""

    def __init__(self, store: Store, dispatch: Callable[[Sequence[Event], datetime], None]) -> None:
        self._store = store
        self._dispatch = dispatch

    def work_page(self, now: datetime) -> bool:
        """Goes on with each redrive; True when there is more to do at once. Raises a STORE_FAULT, after which
        the claims run out."""
        token, claimed = self._store.redrives.claim(
            now, limit=REDRIVES_A_PAGE, lease_seconds=EXPAND_LEASE_SECONDS
        )
        more = False
        for each in claimed:
            try:
                after = self._worked(each, now)
            except STORE_FAULTS:
                raise
            except Exception as error:  # one redrive's fault must not stop the others
                log.exception("redrive.failed", message="A redrive cannot continue", redrive_id=each.id)
                after = each.failed(f"{type(error).__name__}: {error}", now)
            self._store.redrives.advance(after, token)
            more = more or (not after.is_over and after.sent > each.sent and after.rate_per_second is None)
        return more

    def _worked(self, redrive: Redrive, now: datetime) -> Redrive:
        if redrive.state is RedriveState.WAITING:
            if not self._answers(redrive):
                return self._tried(redrive, now)
            redrive = redrive.answered(now)
        room = redrive.room(now)
        if room <= 0:
            return redrive
        selection = _Selection(self._store, redrive, now)
        if redrive.choice is RedriveChoice.NEWEST:
            ids, left = redrive.newest[:room], redrive.newest[room:]
            letters, is_last = selection.of_ids(ids), not left
        else:
            left = ()
            letters = selection.page(Position(*redrive.after) if redrive.after else None, room)
            is_last = letters.next is None
        sent, last_due = self._send(redrive, letters.chosen, now)
        if redrive.cause is not None and sent:
            self._note_sent(redrive, sent, now)
        last = letters.last
        moved = redrive.went_on(
            *(sent, letters.skipped + len(letters.chosen) - sent, last_due),
            newest=left,
            after=None if last is None or left else (last.run_time, last.id),
        )
        return moved.done(now) if is_last else moved

    def _send(
        self, redrive: Redrive, rows: Sequence[EventRecord], now: datetime
    ) -> tuple[int, datetime | None]:
        """Returns how many are due again, and when the next one falls due, with a rate."""
        if not rows:
            return 0, None
        planned = redrive.due_times(len(rows), now)
        due, following = planned or (None, None)
        redriven = self._store.events.redrive([row.id for row in rows], now, REDRIVEN, due=due)
        self._dispatch([event for event in redriven if event.due_at <= now], now)
        return len(redriven), following

    def _answers(self, redrive: Redrive) -> bool:
        """Whether its receiver has succeeded since it failed last."""
        if redrive.cause is None:
            return True
        cause = self._store.causes.newest([redrive.cause]).get(redrive.cause)
        return cause is None or not cause.is_living or cause.answering_since is not None

    def _tried(self, redrive: Redrive, now: datetime) -> Redrive:
        """Sends one dead letter, now and then, if nothing else is sent that would tell."""
        if redrive.cause is None or now < redrive.next_due_at:
            return redrive
        if self._store.cause_marks.count(redrive.cause, most=1).waiting:
            return redrive
        letters = _Selection(self._store, redrive, now).page(None, LETTERS_A_PAGE)
        sent, _ = self._send(replace(redrive, rate_per_second=None), letters.chosen[:1], now)
        return redrive.tried(sent, now)

    def _note_sent(self, redrive: Redrive, count: int, now: datetime) -> None:
        cause = self._store.causes.newest([redrive.cause or ""]).get(redrive.cause or "")
        if cause is not None:
            self._store.causes.change(cause.id, lambda each: each.sent_again(count, now))
