"""The duties of beat, in the order in which a tick does them. A new duty is a use case and a row here.

One look tells for all duties which of them have something to do, because most mostly have nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from scheduler_app.assembly import Assembly
from scheduler_app.clock import monotonic
from scheduler_app.domain.action import CALLBACKS, QueueLengths
from scheduler_app.store import REJECTED, STORE_FAULTS, Store
from scheduler_app.store.waiting_work import PATIENT, Work
from scheduler_app.usecases.deeds.events import COMPLETIONS_A_PAGE
from scheduler_app.usecases.duties.dispatch import Dispatch
from scheduler_app.usecases.duties.housekeeping import (
    EVENTS_A_PAGE,
    Recovery,
    Retention,
    drop_replaced_indexes,
)
from scheduler_app.usecases.duties.remaking import CALENDARS_A_PAGE
from scheduler_app.usecases.duties.tenant_retention import TenantRetention

#: How old a look may be: each tick makes one of its own, ticks that follow at once share one.
WORK_LOOK_SECONDS: Final = 0.5
#: The same of work that can wait: every other look of a tick of a second asks for it.
PATIENT_LOOK_SECONDS: Final = 1.5
#: Where no failure is known, those that no worker has told of are looked for so often.
CAUSES_LOOK_SECONDS: Final = 5.0
#: After a look that failed, every duty looks for itself for so long, and says what is wrong.
WITHOUT_LOOKS_SECONDS: Final = 5.0
#: How often what is late, unserved, missing or not as expected is looked at.
INSPECTION_SECONDS: Final = 10.0


class WaitingWorkView:
    """What one beat knows. Of one thread."""

    def __init__(self, store: Store, expand_before: Callable[[datetime], datetime]) -> None:
        """`expand_before` says which occurrences are to be events at an instant."""
        self._store = store
        self._expand_before = expand_before
        self._known: frozenset[Work] = frozenset(Work)
        self._look_at = self._patient_look_at = float("-inf")

    def has(self, work: Work, now: datetime) -> bool:
        """Whether there may be work of that kind at `now`. It raises no STORE_FAULT."""
        if monotonic() >= self._look_at:
            self._look(now)
        return work in self._known

    def _look(self, now: datetime) -> None:
        at_all = monotonic() >= self._patient_look_at
        try:
            before, but = self._expand_before(now), () if at_all else PATIENT
            found = self._store.waiting_work.kinds(now, expand_before=before, but=but)
        except (*STORE_FAULTS, *REJECTED):
            self._known = frozenset(Work)
            self._look_at = self._patient_look_at = monotonic() + WITHOUT_LOOKS_SECONDS
            return
        self._known = found if at_all else found | (self._known & PATIENT)
        self._look_at = monotonic() + WORK_LOOK_SECONDS
        if at_all:
            self._patient_look_at = monotonic() + PATIENT_LOOK_SECONDS


@dataclass(frozen=True, kw_only=True)
class Duty:
    """A use case, and when a tick runs it. All times are in seconds."""

    #: Begins the names of its log events, such as `expand.unavailable`.
    name: str
    #: Works on one page, given the time; returns True when there is more to do.
    page: Callable[[datetime], bool]
    #: What does not happen while this duty fails; it completes the log's sentence "until then …".
    while_failing: str
    #: The pause after a run that left nothing to do; 0 runs the duty in each tick.
    period: float = 0.0
    #: A tick begins no further page of this duty after that, so that the others get their turn. 0: one page.
    turn: float = 0.0
    #: A duty to run between two pages of this one.
    between_pages: "Duty | None" = None
    #: Asked before a turn: whether there is anything to do. None: the first page finds out.
    wanted: Callable[[datetime], bool] | None = None


def duties(assembly: Assembly) -> list[Duty]:
    """All duties of a beat."""
    work = WaitingWorkView(assembly.store, assembly.expansion.needed_before)

    def has(kind: Work) -> Callable[[datetime], bool]:
        return partial(work.has, kind)

    dispatch = dispatch_duty(assembly.dispatch, has(Work.ROUTED))
    retention = Retention(assembly.store, retention_days=assembly.settings.retention_days)
    return [
        Duty(
            name="rezone",
            page=lambda now: assembly.rezoning.rezone_page(now) > 0,
            while_failing="schedules keep the occurrences that older time zone data gave them",
            period=60.0,
        ),
        Duty(
            name="finish",
            wanted=has(Work.FINISH),
            page=_single(assembly.expansion.finish_ended),
            while_failing="schedules whose last occurrence has passed are still shown as active",
        ),
        Duty(
            name="resume",
            wanted=has(Work.RESUME),
            page=assembly.resumption.resume_page,
            while_failing="schedules whose pause is over stay paused",
            turn=1.0,
        ),
        Duty(
            name="release",
            wanted=has(Work.HELD),
            page=assembly.held_events.release_page,
            while_failing="events that a kill switch held stay held although it is off",
            turn=1.0,
        ),
        Duty(
            name="expand",
            wanted=has(Work.EXPAND),
            page=lambda now: assembly.expansion.expand_page(now).full,
            while_failing="no new events are created: those of the next minutes exist already",
            turn=3.0,
            # A large expansion must not delay what is due.
            between_pages=dispatch,
        ),
        dispatch,
        Duty(
            name="recalendar",
            wanted=has(Work.CALENDARS),
            page=assembly.recalendaring.remake_page,
            while_failing="schedules keep the occurrences that their calendars' former days gave them",
            period=1.0,
        ),
        Duty(
            name="renew_holidays",
            page=lambda now: assembly.recalendaring.renew_holidays(now) == CALENDARS_A_PAGE,
            while_failing="schedules keep the occurrences that older holiday data gave them",
            period=60.0,
        ),
        Duty(
            name="owed",
            wanted=has(Work.OWED),
            page=assembly.owed_expansion.expand_page,
            while_failing="events from before an edit that the edit left to beats are not created",
            period=1.0,
        ),
        Duty(
            name="backfill",
            wanted=has(Work.BACKFILL),
            page=assembly.backfill_duty.work_page,
            while_failing="past occurrences that people asked for are not made",
            period=1.0,
        ),
        Duty(
            name="redrive",
            wanted=has(Work.REDRIVE),
            page=assembly.redrive_duty.work_page,
            while_failing="dead letters that people have asked to send again stay where they are",
            period=1.0,
            turn=1.0,
        ),
        Duty(
            name="delete",
            wanted=has(Work.DELETIONS),
            page=assembly.deletion_duty.work_page,
            while_failing="what belongs to deleted tenants stays in the database",
            period=1.0,
            turn=1.0,
        ),
        Duty(
            name="recover",
            page=lambda now: _recover_page(
                assembly.recovery, assembly.publisher.queue_lengths, now, work.has
            ),
            while_failing="callbacks that dead processes left unfinished wait",
        ),
        Duty(
            name="time_out",
            wanted=has(Work.TIME_OUT),
            page=lambda now: assembly.completion_timeouts.end_overdue(now) == COMPLETIONS_A_PAGE,
            while_failing="events that their receivers do not complete in time stay running",
            period=1.0,
        ),
        Duty(
            name="notify",
            wanted=has(Work.NOTIFY),
            page=assembly.notifications.notify_page,
            while_failing="destinations are not notified of how events ended; they will be notified later",
            turn=1.0,
        ),
        Duty(
            name="causes",
            wanted=_or_every(CAUSES_LOOK_SECONDS, has(Work.CAUSES)),
            page=lambda now: assembly.cause_tending.tend_page(now, known=work.has(Work.CAUSES, now)),
            while_failing="failures that are over are still shown, and some that began are not",
            period=2.0,
            turn=1.0,
        ),
        Duty(
            name="inspect_causes",
            page=_single(assembly.cause_inspection.inspect),
            while_failing="what is late, stalled or unserved is not shown as a failure",
            period=INSPECTION_SECONDS,
        ),
        Duty(
            name="heartbeats",
            wanted=has(Work.HEARTBEATS),
            page=assembly.heartbeat_watch.look_page,
            while_failing="heartbeats that are missed are not told of",
            turn=1.0,
        ),
        Duty(
            name="audit",
            wanted=has(Work.AUDIT),
            page=assembly.audit_duty.chain_page,
            while_failing="lines of the audit have no place in its chain, which is verified without them",
            turn=1.0,
        ),
        Duty(
            name="audit_schedules",
            wanted=has(Work.OWED_LINES),
            page=assembly.audit_duty.move_page,
            while_failing="the audit does not show yet which schedules were made, resumed or finished",
            turn=1.0,
        ),
        Duty(
            name="prune_audit",
            page=assembly.audit_duty.prune_page,
            while_failing="lines of the audit stay in the database beyond their retention",
            period=3_600.0,
            turn=1.0,
        ),
        Duty(
            name="carry_edits",
            page=assembly.audit_duty.carry_page,
            while_failing="edits that an older release has noted are not shown",
            period=60.0,
            turn=1.0,
        ),
        Duty(
            name="tell",
            page=assembly.rule_telling.tell_page,
            while_failing="notifications of failures are not sent; they will be sent later",
            period=5.0,
        ),
        Duty(
            name="inspect",
            page=_single(assembly.inspection.inspect),
            while_failing="corrupt documents that no other duty meets are not reported",
            period=60.0,
        ),
        Duty(
            name="prune",
            page=_single(retention.prune_page),
            while_failing="deleted schedules stay in the database",
            period=60.0,
        ),
        Duty(
            name="prune_tenants",
            page=TenantRetention(assembly.store).prune_page,
            while_failing="what tenants with a retention of their own keep no longer stays in the database",
            period=3_600.0,
            turn=1.0,
        ),
        Duty(
            name="prune_calendars",
            page=_single(retention.prune_calendars),
            while_failing="deleted calendars stay in the database",
            period=60.0,
        ),
        Duty(
            name="drop_indexes",
            page=_single(lambda now: drop_replaced_indexes(assembly.store)),
            while_failing="indexes that an upgrade has replaced are still written for each event",
            period=60.0,
        ),
    ]


def dispatch_duty(
    dispatch: Dispatch, has_named_queues: Callable[[datetime], bool] = lambda now: True
) -> Duty:
    """The duty that sends due events to the workers. Its pages raise what the broker raises, too.
    `has_named_queues`: whether there may be events in other queues than CALLBACKS."""
    return Duty(
        name="dispatch",
        page=lambda now: dispatch.dispatch_page(now, named_queues=has_named_queues(now)).full,
        while_failing="no callback is sent: those that fall due are sent late",
        turn=1.0,
    )


def _or_every(seconds: float, wanted: Callable[[datetime], bool]) -> Callable[[datetime], bool]:
    """Also says yes when it has not for so long."""
    until = float("-inf")

    def wanted_now(now: datetime) -> bool:
        nonlocal until
        if monotonic() < until and not wanted(now):
            return False
        until = monotonic() + seconds
        return True

    return wanted_now


def _single(use_case: Callable[[datetime], object]) -> Callable[[datetime], bool]:
    """A use case that does all of its work in one call."""

    def page(now: datetime) -> bool:
        use_case(now)
        return False

    return page


def _recover_page(
    recovery: Recovery,
    queue_lengths: Callable[[str], QueueLengths],
    now: datetime,
    has: Callable[[Work, datetime], bool],
) -> bool:
    # Messages last: the others need MongoDB only, and continue while the broker is away.
    recovered = [recovery.recover_workers(now)] if has(Work.LEASE_OVER, now) else []
    if has(Work.UNSENT, now):
        recovered.append(recovery.recover_dispatches(now))
    if has(Work.UNCLAIMED, now):
        named = recovery.named_queues() if has(Work.ROUTED, now) else ()
        recovered += [
            recovery.recover_messages(now, queue=queue_lengths(name), name=name)
            for name in (CALLBACKS, *named)
        ]
    return max((each.total for each in recovered), default=0) >= EVENTS_A_PAGE
