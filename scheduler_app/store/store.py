"""The store: one connection and the collections behind it."""

from scheduler_app.clock import Clock
from scheduler_app.config import Settings
from scheduler_app.store.access_tokens import CalendarFeeds, Sessions
from scheduler_app.store.api_keys import StoredKeys
from scheduler_app.store.audit import Audit
from scheduler_app.store.audit_chain import AuditChain
from scheduler_app.store.backfills import Backfills
from scheduler_app.store.backlogs import Backlogs
from scheduler_app.store.calendars import Calendars
from scheduler_app.store.cause_inspections import CauseInspections
from scheduler_app.store.causes import Causes
from scheduler_app.store.deletions import Deletions
from scheduler_app.store.destinations import Destinations
from scheduler_app.store.dry_run import DryRunMongo
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.ended_work import EndedWork
from scheduler_app.store.events.cancellations import Cancellations, CancelRequests
from scheduler_app.store.events.cause_marks import CauseMarks
from scheduler_app.store.events.claims import Claims, Expirations
from scheduler_app.store.events.completions import Completions
from scheduler_app.store.events.events import Events
from scheduler_app.store.events.figures import EventFigures, NewestEvents
from scheduler_app.store.events.lists import EventLists
from scheduler_app.store.events.messages import Messages, OwedNotifications
from scheduler_app.store.events.outbox import BlackedOutEvents, EventHolds, Outbox
from scheduler_app.store.events.outcomes import Outcomes
from scheduler_app.store.events.overlaps import Overlaps
from scheduler_app.store.events.run_counts import RunCounting
from scheduler_app.store.expectations import Expectations
from scheduler_app.store.figure_counters import FigureCounters
from scheduler_app.store.forecasts import Forecasts
from scheduler_app.store.heartbeats import Heartbeats
from scheduler_app.store.idempotency import Idempotency
from scheduler_app.store.index_builds import drop_replaced, ensure_indexes
from scheduler_app.store.ledger import History, Ledger
from scheduler_app.store.missed import MissedOccurrences
from scheduler_app.store.mongo import Mongo
from scheduler_app.store.notification_rules import NotificationRules
from scheduler_app.store.partition_owners import PartitionOwners
from scheduler_app.store.people import People, PersonSessions
from scheduler_app.store.processes import Processes, shared_settings
from scheduler_app.store.quotas import Quotas
from scheduler_app.store.recoveries import Inspections, Recoveries
from scheduler_app.store.redrives import Redrives
from scheduler_app.store.schedules.cursors import Cursors, OwedRanges
from scheduler_app.store.schedules.last_runs import LastRuns
from scheduler_app.store.schedules.revisions import Pauses, Remakes
from scheduler_app.store.schedules.schedules import Schedules
from scheduler_app.store.schedules.successors import Successors
from scheduler_app.store.search import Search
from scheduler_app.store.silences import Silences
from scheduler_app.store.stops import BlackoutDocuments, KillSwitchDocuments
from scheduler_app.store.tags import Tags
from scheduler_app.store.tellings import Tellings
from scheduler_app.store.tenant_exports import TenantExports
from scheduler_app.store.tenants import Tenants
from scheduler_app.store.transactions import OpenTransactions
from scheduler_app.store.waiting_work import WaitingWork


class Store:
    """Made once in each process; connecting is lazy, so that making it needs no MongoDB."""

    def __init__(self, settings: Settings, mongo: Mongo | None = None) -> None:
        """Raises InvalidField for an unusable SECRETS_KEY, InvalidSetting for an unusable MONGO_URI."""
        self._settings = settings
        self.mongo = mongo or Mongo(settings.mongo_uri, settings.mongo_database)
        self.secret_box = SecretBox(settings.secrets_key)
        self.events = Events(self.mongo)
        self.outbox = Outbox(self.mongo)
        self.blackouts = BlackoutDocuments(self.mongo)
        self.blacked_out = BlackedOutEvents(self.mongo)
        self.holding = EventHolds(self.mongo)
        self.kill_switches = KillSwitchDocuments(self.mongo)
        self.cancel_requests = CancelRequests(self.mongo)
        self.claims = Claims(self.mongo, self.secret_box)
        self.messages = Messages(self.mongo, self.secret_box)
        self.cancellations = Cancellations(self.mongo)
        self.expirations = Expirations(self.mongo)
        self.history = History(self.mongo)
        self.ledger = Ledger(self.mongo)
        self.missed = MissedOccurrences(self.mongo)
        self.recoveries = Recoveries(self.mongo)
        self.event_lists = EventLists(self.mongo)
        self.event_figures = EventFigures(self.mongo)
        self.figure_counters = FigureCounters(self.mongo)
        self.newest_events = NewestEvents(self.mongo)
        self.run_counting = RunCounting(self.mongo)
        self.outcomes = Outcomes(self.mongo)
        self.completions = Completions(self.mongo)
        self.overlaps = Overlaps(self.mongo)
        self.owed_notifications = OwedNotifications(self.mongo)
        self.last_runs = LastRuns(self.mongo)
        self.causes = Causes(self.mongo)
        self.redrives = Redrives(self.mongo)
        self.cause_inspections = CauseInspections(self.mongo)
        self.expectations = Expectations(self.mongo)
        self.cause_marks = CauseMarks(self.mongo)
        self.silences = Silences(self.mongo)
        self.tellings = Tellings(self.mongo)
        self.calendars = Calendars(self.mongo)
        self.notification_rules = NotificationRules(self.mongo, self.secret_box, self.calendars)
        self.heartbeats = Heartbeats(self.mongo, self.calendars)
        self.schedules = Schedules(self.mongo, self.secret_box, self.calendars)
        self.destinations = Destinations(self.mongo, self.secret_box)
        self.search = Search(self.mongo)
        self.tags = Tags(self.mongo)
        self.successors = Successors(self.mongo, self.secret_box)
        self.cursors = Cursors(self.mongo, self.secret_box, self.calendars)
        self.remakes = Remakes(self.mongo, self.cursors)
        self.partition_owners = PartitionOwners(self.mongo)
        self.transactions = OpenTransactions(self.mongo)
        self.processes = Processes(self.mongo, shared_settings(settings))
        self.inspections = Inspections(self.mongo, self.secret_box)
        self.pauses = Pauses(self.mongo, self.secret_box, self.calendars)
        self.owed = OwedRanges(self.mongo, self.calendars)
        self.forecasts = Forecasts(self.mongo, self.secret_box, self.calendars)
        self.backlogs = Backlogs(self.mongo)
        self.waiting_work = WaitingWork(self.mongo)
        self.backfills = Backfills(self.mongo, self.calendars)
        self.calendar_feeds = CalendarFeeds(self.mongo)
        self.idempotency = Idempotency(self.mongo)
        self.audit = Audit(self.mongo)
        self.audit_chain = AuditChain(self.mongo)
        self.sessions = Sessions(self.mongo, settings.session_hours * 3600)
        self.people = People(self.mongo)
        self.person_sessions = PersonSessions(self.mongo, settings.oidc_client_secret)
        self.api_keys = StoredKeys(self.mongo)
        self.tenants = Tenants(self.mongo)
        self.quotas = Quotas(self.mongo)
        self.deletions = Deletions(self.mongo)
        self.ended_work = EndedWork(self.mongo)
        self.tenant_exports = TenantExports(self.mongo, self.secret_box)
        self._prepared = False

    def prepare(self) -> None:
        """Makes the indexes, once in a process. Raises a STORE_FAULT."""
        if not self._prepared:
            ensure_indexes(
                self.mongo,
                retention_days=self._settings.retention_days,
                message_retention_days=self._settings.message_retention_days,
            )
            self._prepared = True

    def drop_replaced_indexes(self) -> None:
        """See `drop_replaced`. Raises a STORE_FAULT."""
        drop_replaced(self.mongo)

    def dry_run(self) -> "Store":
        """The same database for one request, whose writes report what they would do and change nothing."""
        return Store(self._settings, DryRunMongo(self.mongo))

    def synchronize(self, clock: Clock) -> float:
        """Measures this process's clock against mongod's; returns the offset in seconds.
        Raises a STORE_FAULT."""
        return clock.synchronize(self.mongo.server_time)

    def jumped_ahead_seconds(self, clock: Clock) -> float:
        """By how much leases look over too early, after a jump of mongod's clock. Raises a STORE_FAULT."""
        return clock.jumped_ahead_seconds(self.mongo.server_time)

    def close(self) -> None:
        self.mongo.close()
