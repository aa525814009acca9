"""Imports of what another installation has exported of a tenant: each line is taken or refused by itself,
and a second import of the same lines makes nothing twice.

What would be sent by two installations is not sent here: schedules arrive paused, and what waited stays
behind, unless the import is to go on where the other one has stopped.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, Protocol

from scheduler_app.domain.audit import Change, Difference
from scheduler_app.domain.calendars import NamedCalendar
from scheduler_app.domain.errors import InvalidField, SchedulerError
from scheduler_app.domain.ids import WholeId, is_notification, message_id_of, name_of, whole_id
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.stored_fields import Corrupt
from scheduler_app.domain.tenant import Tenant
from scheduler_app.store import Store
from scheduler_app.store.acting import acting, current_act
from scheduler_app.store.calendars import from_calendar_document
from scheduler_app.store.destinations import CorruptDestination, read_destination
from scheduler_app.store.encryption import UnreadableSecret
from scheduler_app.store.faults import STORE_FAULTS
from scheduler_app.store.notification_rules import CorruptNotificationRule
from scheduler_app.store.schedules.documents import CorruptSchedule, read_whole_schedule
from scheduler_app.store.silences import read_silence
from scheduler_app.store.stops import CorruptBlackout, CorruptKillSwitch, read_blackout, read_kill_switch
from scheduler_app.store.tenant_imports import (
    ImportedLine,
    is_waiting,
    owner_of,
    read_header,
    read_line,
    waiting_event,
    waiting_message,
)
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.deeds.calendars import CalendarService
from scheduler_app.usecases.deeds.creation import Creation
from scheduler_app.usecases.deeds.destinations import DestinationService
from scheduler_app.usecases.deeds.messages import MessageService
from scheduler_app.usecases.deeds.notification_rules import NotificationRuleService, SilenceService
from scheduler_app.usecases.stops import BlackoutService, KillSwitchService

log = get_logger(__name__)

#: Of one request: whoever has more sends it in several, each with the first line of the file.
MAX_IMPORTED_LINES: Final = 1_000
MAX_REFUSALS_TOLD: Final = 100
IMPORTED: Final = "Imported from another installation"

#: What became of a line.
Outcome = Literal["made", "there", "left_out"]


class ImportServices(Protocol):
    """The use cases that an import needs."""

    @property
    def creation(self) -> Creation: ...
    @property
    def messages(self) -> MessageService: ...
    @property
    def destinations(self) -> DestinationService: ...
    @property
    def calendars(self) -> CalendarService: ...
    @property
    def blackouts(self) -> BlackoutService: ...
    @property
    def kill_switches(self) -> KillSwitchService: ...
    @property
    def notification_rules(self) -> NotificationRuleService: ...
    @property
    def silences(self) -> SilenceService: ...


@dataclass(frozen=True, slots=True)
class RefusedLine:
    number: int
    """Of the request's lines, from 1 on."""
    reason: str
    collection: str = ""
    name: str = ""


@dataclass(slots=True)
class ImportCounts:
    """What became of the lines, by collection."""

    made: Counter[str] = field(default_factory=Counter)
    there: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    refusals: list[RefusedLine] = field(default_factory=list)

    def refuse(self, refused: RefusedLine) -> None:
        self.refused += 1
        if len(self.refusals) < MAX_REFUSALS_TOLD:
            self.refusals.append(refused)


class TenantImport:
    def __init__(
        self, services: ImportServices, store: Store, tenant: Tenant, now: datetime, *, active: bool
    ) -> None:
        """`active`: schedules that were active go on, and what waited is sent from here."""
        self._services, self._store = services, store
        self._tenant, self._limits = tenant.name, tenant.limits
        self._now, self._active = now, active
        self._owners: dict[str, Schedule] = {}

    def run(self, lines: Sequence[str]) -> ImportCounts:
        """Takes the lines; the first one is that of the file. Raises InvalidField where it is not, or there
        are too many, and a STORE_FAULT, after which the same request may be sent again."""
        if len(lines) > MAX_IMPORTED_LINES:
            raise InvalidField("body", f"has {len(lines)} lines, and {MAX_IMPORTED_LINES} at most are taken")
        try:
            source = read_header(lines[0] if lines else "")
        except Corrupt as error:
            raise InvalidField("body", f"line 1 {error}") from None
        counts = ImportCounts()
        # The limits are those of the tenant that takes it, whosever request this is.
        with acting(replace(current_act(), limits=self._limits)):
            for number, line in enumerate(lines[1:], 2):
                if line.strip():
                    self._take(number, line, source, counts)
        told = {name: dict(getattr(counts, name)) for name in ("made", "there", "left_out")}
        difference = Difference(after=told | {"refused": counts.refused})
        self._store.audit.note(Change("imported", "tenant", whole_id(self._tenant, self._tenant), difference))
        log.info("tenant.imported", message="Lines of an export were imported", tenant=self._tenant, **told)
        return counts

    def _take(self, number: int, line: str, source: str, counts: ImportCounts) -> None:
        found: ImportedLine | None = None
        try:
            found = read_line(line, source, self._tenant)
            if found is None:
                return
            take = _TAKEN.get(found.collection)
            if take is not None and found.lacks:
                raise Corrupt(
                    f"its secrets ({found.lacks}) are not in the export: export with them, or make it by hand"
                )
            outcome: Outcome = "left_out" if take is None else take(self, found)
        except STORE_FAULTS:
            raise
        except Exception as error:  # a line edited by hand may cause any error
            named = ("", "") if found is None else (found.collection, name_of(found.id))
            counts.refuse(RefusedLine(number, _said(error)[:500], *named))
        else:
            getattr(counts, outcome)[found.collection] += 1

    def _calendar(self, line: ImportedLine) -> Outcome:
        if "deleted_at" in line.document:
            return "left_out"
        named: NamedCalendar = from_calendar_document(line.document)
        own_id = WholeId(line.id)
        if self._services.calendars.find(own_id) is not None:
            return "there"
        self._services.calendars.put(own_id, named.calendar, self._now)
        return "made"

    def _destination(self, line: ImportedLine) -> Outcome:
        found = read_destination(line.document, self._store.secret_box)
        if isinstance(found, CorruptDestination):
            raise Corrupt(found.reason)
        return "made" if self._services.destinations.adopt(found) else "there"

    def _schedule(self, line: ImportedLine) -> Outcome:
        found = read_whole_schedule(line.document, self._store.secret_box)
        if isinstance(found, CorruptSchedule):
            raise Corrupt(found.reason)
        if found.state is ScheduleState.DELETED:
            return "left_out"
        return _made(self._services.creation.adopt(found, self._now, active=self._active))

    def _event(self, line: ImportedLine) -> Outcome:
        """What has ended stays behind, as the history of the other installation."""
        if not self._active or not is_waiting(line.document):
            return "left_out"
        owner_id = owner_of(line.document)
        if owner_id is None:
            if is_notification(message_id_of(line.id)):
                return "left_out"
            event, message = waiting_message(line.document, self._store.secret_box)
            return _made(self._services.messages.adopt(event, message, self._now))
        owner = self._owner(owner_id)
        if owner is None:
            return "left_out"
        made = waiting_event(line.document, owner)
        return _made(self._store.events.insert([made], self._now, IMPORTED) == 1)

    def _owner(self, schedule_id: WholeId) -> Schedule | None:
        """The schedule, if it is active here."""
        if schedule_id not in self._owners:
            found = self._store.schedules.get(schedule_id)
            if not isinstance(found, Schedule) or found.state is not ScheduleState.ACTIVE:
                return None
            self._owners[schedule_id] = found
        return self._owners[schedule_id]

    def _blackout(self, line: ImportedLine) -> Outcome:
        found = read_blackout(WholeId(line.id), line.document, self._now)
        if isinstance(found, CorruptBlackout):
            raise Corrupt(found.reason)
        if any(each.id == found.id for each in self._services.blackouts.of(self._tenant, self._now)):
            return "there"
        self._services.blackouts.put(found, self._now)
        return "made"

    def _kill_switch(self, line: ImportedLine) -> Outcome:
        found = read_kill_switch(line.document)
        if found is None or isinstance(found, CorruptKillSwitch):
            raise Corrupt("is no kill switch" if found is None else found.reason)
        on = self._services.kill_switches.turn_on(found.target, self._now, note=found.note, by=found.by)
        return _made(not on.was_on)

    def _notification(self, line: ImportedLine) -> Outcome:
        found = self._store.notification_rules.read(line.document)
        if isinstance(found, CorruptNotificationRule):
            raise Corrupt(found.reason)
        if self._store.notification_rules.get(found.id) is not None:
            return "there"
        self._services.notification_rules.put(found, self._now)
        return "made"

    def _silence(self, line: ImportedLine) -> Outcome:
        found = read_silence(line.document)
        if found.until <= self._now:
            return "left_out"
        if any(each.id == found.id for each in self._services.silences.of(self._tenant)):
            return "there"
        self._services.silences.put(found, self._now)
        return "made"


def _said(error: Exception) -> str:
    if isinstance(error, InvalidField):
        return f"{error.field}: {error.message}"
    known = isinstance(error, SchedulerError | Corrupt | UnreadableSecret)
    return str(error) if known else f"cannot be read: {type(error).__name__}"


def _made(is_new: bool) -> Outcome:
    return "made" if is_new else "there"


#: What of each collection is taken. The rest stays behind: it tells what happened in the other installation
#: (history, causes, figures, the ledger), or is opened by secret URLs of that one (heartbeats, feeds).
_TAKEN: Final[Mapping[str, Callable[[TenantImport, ImportedLine], Outcome]]] = {
    "calendars": TenantImport._calendar,
    "destinations": TenantImport._destination,
    "schedules": TenantImport._schedule,
    "events": TenantImport._event,
    "blackouts": TenantImport._blackout,
    "kill_switches": TenantImport._kill_switch,
    "notifications": TenantImport._notification,
    "silences": TenantImport._silence,
}
