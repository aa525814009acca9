"""The composition root: from settings to all that the API, a beat and a worker are made of.

No other module decides which parts know each other. Nothing connects to a server while it is assembled.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from scheduler_app.actions.http import Guard, guard_of, new_secret
from scheduler_app.actions.kind import ActionKind, Verdict, make_executors
from scheduler_app.actions.registry import KINDS, kind_of
from scheduler_app.broker.app import Application
from scheduler_app.broker.publisher import CeleryPublisher
from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.domain.action import CALLBACKS, Action
from scheduler_app.domain.api_key import new_key
from scheduler_app.domain.event import Event
from scheduler_app.domain.flow_control import Limiter
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.masking import MASK
from scheduler_app.domain.retry import RetryPolicy
from scheduler_app.domain.schedule import Deliverable, Schedule
from scheduler_app.domain.url_token import new_token
from scheduler_app.health.processes import check_fleet
from scheduler_app.health.work import unserved
from scheduler_app.store import STORE_FAULTS, Processes, SecretBox, Store
from scheduler_app.store.access_tokens import Sessions
from scheduler_app.store.audit import Audit
from scheduler_app.store.events.figures import EventFigures, NewestEvents
from scheduler_app.store.events.lists import EventLists
from scheduler_app.store.idempotency import Idempotency
from scheduler_app.usecases.cause_counts import CauseCounts
from scheduler_app.usecases.deeds.api_keys import KeyService, TenantService
from scheduler_app.usecases.deeds.calendars import CalendarService
from scheduler_app.usecases.deeds.creation import Creation
from scheduler_app.usecases.deeds.deletions import DeletionService
from scheduler_app.usecases.deeds.destinations import DestinationService
from scheduler_app.usecases.deeds.events import CompletionService, CompletionTimeouts, EventService
from scheduler_app.usecases.deeds.failures import FailureService
from scheduler_app.usecases.deeds.heartbeats import HeartbeatService
from scheduler_app.usecases.deeds.messages import MessageQuota, MessageService
from scheduler_app.usecases.deeds.notification_rules import NotificationRuleService, SilenceService
from scheduler_app.usecases.deeds.schedules import Describe, ExpandUntil, ScheduleService, tell_state
from scheduler_app.usecases.deeds.sign_ins import PersonService, SignIns
from scheduler_app.usecases.duties.abandoned_transactions import AbandonedTransactions
from scheduler_app.usecases.duties.audit import AuditDuty
from scheduler_app.usecases.duties.backfills import BackfillDuty, BackfillService
from scheduler_app.usecases.duties.cause_inspection import CauseInspection, Fault
from scheduler_app.usecases.duties.causes import CauseTending
from scheduler_app.usecases.duties.deletions import DeletionDuty
from scheduler_app.usecases.duties.dispatch import Dispatch, PromptDispatch
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.usecases.duties.heartbeats import HeartbeatWatch
from scheduler_app.usecases.duties.housekeeping import Inspection, Recovery
from scheduler_app.usecases.duties.notifications import Notifications
from scheduler_app.usecases.duties.owed_expansion import OwedExpansion
from scheduler_app.usecases.duties.partition_share import PartitionShare, lease_seconds
from scheduler_app.usecases.duties.pauses import FailurePausing, Resumption
from scheduler_app.usecases.duties.redrives import RedriveDuty, RedriveService
from scheduler_app.usecases.duties.remaking import Recalendaring, Rezoning
from scheduler_app.usecases.duties.telling import RuleTelling
from scheduler_app.usecases.forecast import ForecastService
from scheduler_app.usecases.heartbeat import Presence
from scheduler_app.usecases.notices import Notices
from scheduler_app.usecases.questions.audit import AuditQuestions
from scheduler_app.usecases.questions.backlog import BacklogService
from scheduler_app.usecases.questions.calendar_feeds import CalendarFeedService
from scheduler_app.usecases.questions.destinations import DestinationQuestions
from scheduler_app.usecases.questions.figures import RecentFigures
from scheduler_app.usecases.questions.ledger import LedgerQuestions
from scheduler_app.usecases.questions.open_failures import OpenFailures
from scheduler_app.usecases.questions.promise import PromiseQuestions
from scheduler_app.usecases.questions.run_calendar import RunCalendars
from scheduler_app.usecases.questions.schedules import ScheduleQuestions
from scheduler_app.usecases.questions.search import SearchQuestions
from scheduler_app.usecases.questions.tenant_exports import TenantExportService
from scheduler_app.usecases.questions.timed_figures import FigureQuestions
from scheduler_app.usecases.request_rates import RequestRates
from scheduler_app.usecases.stops import BlackoutService, HeldEvents, KillSwitchNotice, KillSwitchService

if TYPE_CHECKING:
    from scheduler_app.worker import Pipeline


@dataclass(frozen=True)
class Effects:
    """What people's deeds do beside writing into their store."""

    expand_until: ExpandUntil
    expand_and_dispatch: Callable[[Sequence[Schedule], datetime], None]
    dispatch_soon: Callable[[Sequence[Event], datetime], None]
    dispatch_urgently: Callable[[Sequence[Event], datetime], None]
    attempt: Callable[[Event, Schedule, datetime], Verdict] | None
    new_secret: Callable[[], str]
    new_token: Callable[[str], tuple[str, str]]
    new_key: Callable[[WholeId], str]
    judges_failures: bool
    describe: Describe


@dataclass(frozen=True)
class Services:
    """What people do, and what asks nothing but the store that they write to. Those of a dry run are made
    by the same code over a store that judges writes and makes none."""

    store: Store
    creation: Creation
    manager: ScheduleService
    schedules: ScheduleQuestions
    events: EventService
    failures: FailureService
    redrives: RedriveService
    completions: CompletionService
    messages: MessageService
    destinations: DestinationService
    calendars: CalendarService
    calendar_feeds: CalendarFeedService
    heartbeats: HeartbeatService
    backfills: BackfillService
    backlog: BacklogService
    ledger: LedgerQuestions
    blackouts: BlackoutService
    kill_switches: KillSwitchService
    notifications: Notifications
    notification_rules: NotificationRuleService
    silences: SilenceService
    failure_pausing: FailurePausing
    keys: KeyService
    tenants: TenantService
    deletions: DeletionService
    request_rates: RequestRates
    sign_ins: SignIns
    people: PersonService


@dataclass(frozen=True)
class Assembly(Services):
    """The parts of one process, which its threads share. Each process uses what its role needs: the API
    what people do and ask, and hands `store` on to questions that are functions; a beat the duties from
    `expansion` to `inspection`; a worker `pipeline()`."""

    settings: Settings
    publisher: CeleryPublisher
    guard: Guard
    destination_questions: DestinationQuestions
    forecasts: ForecastService
    promises: PromiseQuestions
    run_calendars: RunCalendars
    search: SearchQuestions
    tenant_exports: TenantExportService
    figures: FigureQuestions
    audit_duty: AuditDuty
    audit_questions: AuditQuestions
    backfill_duty: BackfillDuty
    partition_share: PartitionShare
    abandoned_transactions: AbandonedTransactions
    expansion: Expansion
    owed_expansion: OwedExpansion
    dispatch: Dispatch
    recovery: Recovery
    completion_timeouts: CompletionTimeouts
    resumption: Resumption
    kill_switch_notice: KillSwitchNotice
    held_events: HeldEvents
    rezoning: Rezoning
    recalendaring: Recalendaring
    inspection: Inspection
    cause_tending: CauseTending
    heartbeat_watch: HeartbeatWatch
    cause_inspection: CauseInspection
    redrive_duty: RedriveDuty
    deletion_duty: DeletionDuty
    rule_telling: RuleTelling
    recent_figures: RecentFigures
    open_failures: OpenFailures
    # What reads or keeps one thing, and needs no use case around it.
    audit: Audit
    event_lists: EventLists
    event_figures: EventFigures
    newest_events: NewestEvents
    processes: Processes
    sessions: Sessions
    idempotency: Idempotency
    secret_box: SecretBox
    services_over: Callable[[Store, Effects], Services]
    make_limiter: Callable[[], Limiter | None]
    """Makes what counts for destinations, with a connection of its own."""
    faults: tuple[type[Exception], ...]
    """The exceptions by which MongoDB and the broker show that they are away."""

    @staticmethod
    def now() -> datetime:
        return clock.now()

    def check_mongo(self) -> None:
        """Raises a STORE_FAULT when MongoDB does not answer."""
        self.store.mongo.hello()

    def heartbeat(
        self,
        role: str,
        *,
        name: str = "",
        facts: Callable[[], Mapping[str, Any]] = dict,
        on_offset: Callable[[float], None] = lambda offset: None,
    ) -> Presence:
        """Returns the thread that reports this process; see `Presence`. It has not started yet."""
        return Presence(self.store, clock, role, name=name, facts=facts, on_offset=on_offset)

    def kinds_served(self, queues: Collection[str]) -> list[ActionKind[Any]]:
        """Returns the kinds of actions that a worker for these queues executes."""
        return [kind for kind in KINDS.values() if kind.is_served(self.settings, queues)]

    def pipeline(self, worker: str, queues: Collection[str] = (CALLBACKS,)) -> "Pipeline":
        """Makes the delivery of a worker of that name for the events in `queues`. It executes every kind of
        action whose queue is one of them. Its threads have not started yet. Raises InvalidSetting."""
        # Only a worker asks for it: the API and beats do without all that delivers.
        from scheduler_app.worker import Pipeline

        return Pipeline(
            self.store,
            make_executors(self.settings, self.kinds_served(queues)),
            queues=queues,
            now=clock.now,
            worker=worker,
            horizon_seconds=self.settings.horizon_seconds,
            max_events=self.settings.worker_max_events,
            limiter=self.make_limiter(),
            judge_failures=self.failure_pausing.judge,
        )

    def dry_run(self) -> "Assembly":
        """Returns the same for one request that must change nothing: the store judges writes and makes none,
        no secret is generated, nothing is expanded or dispatched."""
        return replace(self, **vars(self.services_over(self.store.dry_run(), _NO_EFFECTS)))


def assemble(
    settings: Settings,
    app: Application,
    *,
    limiter_seconds: float = 2.0,
    describe: Describe = tell_state,
) -> Assembly:
    """Puts a process together; `app` is the Celery application made for the same settings. What has to know
    the limits of destinations waits `limiter_seconds` for an answer. `describe` tells what an
    edit of a schedule changes.

    Raises InvalidField for an unusable SECRETS_KEY, InvalidSetting for an unusable MONGO_URI.
    """
    store, publisher = Store(settings), CeleryPublisher(app)
    share = PartitionShare(
        store,
        lease_seconds=lease_seconds(
            horizon_seconds=settings.horizon_seconds,
            ticker_seconds=settings.prequeuer_ticker_interval_seconds,
        ),
    )
    expansion = Expansion(store, timeframe_seconds=settings.timeframe_seconds, partitions=share.owned)
    limiter = app.broker.limiter(settings, seconds=limiter_seconds)
    dispatch = Dispatch(
        store,
        publisher,
        horizon_seconds=settings.horizon_seconds,
        limiter=limiter,
        partitions=share.owned,
    )
    faults = (*STORE_FAULTS, *publisher.unavailable)
    prompt = PromptDispatch(
        expansion,
        dispatch,
        faults=faults,
        timeframe_seconds=settings.timeframe_seconds,
        horizon_seconds=settings.horizon_seconds,
        is_away=publisher.is_away,
    )
    check_action = _checker(settings)

    def services_over(store: Store, effects: Effects) -> Services:
        manager = ScheduleService(
            store,
            effects.expand_until,
            effects.expand_and_dispatch,
            effects.dispatch_urgently,
            check_action,
            effects.new_secret,
            effects.describe,
        )
        notifications = Notifications(store, effects.dispatch_soon, settings.worker_max_retries)
        failure_pausing = FailurePausing(store, manager, tell=notifications.paused)
        return Services(
            store=store,
            creation=Creation(
                store,
                effects.expand_and_dispatch,
                settings.worker_max_retries,
                check_action,
                effects.new_secret,
            ),
            manager=manager,
            schedules=ScheduleQuestions(store),
            events=EventService(store, effects.dispatch_urgently),
            failures=FailureService(store),
            redrives=RedriveService(store),
            completions=CompletionService(
                store,
                effects.dispatch_urgently,
                failure_pausing.judge if effects.judges_failures else _judges_no_failures,
                CauseCounts(store.causes),
            ),
            messages=MessageService(
                store,
                effects.dispatch_soon,
                settings.worker_max_retries,
                check_action,
                effects.new_secret,
                MessageQuota(store, settings.max_messages),
            ),
            destinations=DestinationService(
                store,
                check_action=check_action,
                new_secret=effects.new_secret,
                attempt=effects.attempt,
                limiter=limiter,
            ),
            calendars=CalendarService(store),
            calendar_feeds=CalendarFeedService(store, effects.new_token),
            heartbeats=HeartbeatService(store, effects.new_token),
            backfills=BackfillService(store),
            backlog=BacklogService(store),
            ledger=LedgerQuestions(store, timedelta(days=settings.retention_days)),
            blackouts=BlackoutService(store),
            kill_switches=KillSwitchService(store),
            notifications=notifications,
            notification_rules=NotificationRuleService(
                store,
                check_action,
                effects.new_secret,
                Notices(
                    store,
                    notifications.send,
                    RetryPolicy(max_retries=settings.worker_max_retries),
                    settings.public_url or "",
                ),
            ),
            silences=SilenceService(store),
            failure_pausing=failure_pausing,
            keys=KeyService(store, effects.new_key),
            tenants=TenantService(
                store, max(settings.retention_days, settings.message_retention_days), limiter is not None
            ),
            deletions=DeletionService(store),
            request_rates=RequestRates(limiter),
            sign_ins=SignIns(store, settings),
            people=PersonService(store),
        )

    services = services_over(
        store,
        Effects(
            expand_until=prompt.expand_until,
            expand_and_dispatch=prompt.expand_and_dispatch,
            dispatch_soon=prompt.dispatch_soon,
            dispatch_urgently=prompt.dispatch_urgently,
            attempt=attempter(settings),
            new_secret=new_secret,
            new_token=new_token,
            new_key=new_key,
            judges_failures=True,
            describe=describe,
        ),
    )
    return Assembly(
        **vars(services),
        settings=settings,
        publisher=publisher,
        guard=guard_of(settings),
        destination_questions=DestinationQuestions(store, services.destinations),
        forecasts=ForecastService(store),
        promises=PromiseQuestions(store, services.destinations),
        run_calendars=RunCalendars(store),
        search=SearchQuestions(store),
        tenant_exports=TenantExportService(store),
        figures=FigureQuestions(store),
        audit_duty=AuditDuty(store, settings.audit_retention_days),
        audit_questions=AuditQuestions(store),
        backfill_duty=BackfillDuty(store, ahead_seconds=settings.horizon_seconds),
        partition_share=share,
        abandoned_transactions=AbandonedTransactions(store),
        expansion=expansion,
        owed_expansion=OwedExpansion(store),
        dispatch=dispatch,
        recovery=Recovery(store, partitions=share.owned),
        completion_timeouts=CompletionTimeouts(
            store, services.failure_pausing.judge, services.completions.cause_counts
        ),
        resumption=Resumption(store),
        kill_switch_notice=KillSwitchNotice(store),
        held_events=HeldEvents(store),
        rezoning=Rezoning(store),
        recalendaring=Recalendaring(store),
        inspection=Inspection(store),
        cause_tending=CauseTending(store),
        redrive_duty=RedriveDuty(store, prompt.dispatch_urgently),
        deletion_duty=DeletionDuty(store),
        heartbeat_watch=HeartbeatWatch(store),
        cause_inspection=CauseInspection(
            store, partial(faults_of, store), partial(unserved_of, store), limiter
        ),
        rule_telling=RuleTelling(store, services.notification_rules.notices),
        recent_figures=RecentFigures(store),
        open_failures=OpenFailures(store),
        audit=store.audit,
        event_lists=store.event_lists,
        event_figures=store.event_figures,
        newest_events=store.newest_events,
        processes=store.processes,
        sessions=store.sessions,
        idempotency=store.idempotency,
        secret_box=store.secret_box,
        services_over=services_over,
        make_limiter=lambda: app.broker.limiter(settings),
        faults=faults,
    )


def _checker(settings: Settings) -> Callable[[Action], None]:
    checkers = {name: kind.checker(settings) for name, kind in KINDS.items()}

    def check(action: Action) -> None:
        checkers[action.kind](action)

    return check


def attempter(settings: Settings) -> Callable[[Event, Deliverable, datetime], Verdict]:
    """Returns what makes one attempt at once, by an executor of its own, and waits for its verdict."""

    def attempt(event: Event, deliverable: Deliverable, now: datetime) -> Verdict:
        executor = kind_of(deliverable.action).executor(settings, lambda: None)
        try:
            executor.start(event, deliverable, now)
            while not (verdicts := executor.wait(1.0)):
                continue
            return verdicts[0]
        finally:
            # It waits for a name server that does not answer, longer than the attempt had to.
            threading.Thread(target=executor.close, name="attempt-close", daemon=True).start()

    return attempt


def faults_of(store: Store) -> list[Fault]:
    """The parts of the machinery that do not work, by what processes report. Raises a STORE_FAULT."""
    checks = check_fleet(store.processes.alive())
    return [Fault(check.name, check.found) for check in checks if not check.ok]


def unserved_of(store: Store, queues: Sequence[str]) -> list[str]:
    """Those of these queues whose messages no worker takes. Raises a STORE_FAULT."""
    judged = unserved(store.processes.alive(), queues) if queues else {}
    return [queue for queue in queues if judged[queue]]


def _do_nothing(items: Sequence[Any], now: datetime) -> None:
    """Takes the place of expanding and dispatching in a dry run."""


def _judges_no_failures(schedule_id: str, now: datetime) -> bool:
    """Takes the place of pausing after failures in a dry run."""
    return False


_NO_EFFECTS = Effects(
    expand_until=lambda schedule, until: None,
    expand_and_dispatch=_do_nothing,
    dispatch_soon=_do_nothing,
    dispatch_urgently=_do_nothing,
    attempt=None,
    new_secret=lambda: MASK,
    new_token=lambda feed_id: (MASK, ""),
    new_key=lambda key_id: MASK,
    judges_failures=False,
    describe=tell_state,
)
