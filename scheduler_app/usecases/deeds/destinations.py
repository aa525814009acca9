"""What people do with destinations: put, change, pause, resume, test, delete."""

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from scheduler_app.actions.kind import Verdict
from scheduler_app.domain import event
from scheduler_app.domain.action import Action
from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.destination import Destination, DestinationDraft
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound, StaleVersion, stale_version
from scheduler_app.domain.event import Event
from scheduler_app.domain.flow_control import FlowState, Limiter
from scheduler_app.domain.http_action import OPTIONS, HttpAction, http_action
from scheduler_app.domain.ids import WholeId, check_new_name, name_of, tenant_of, whole_id
from scheduler_app.domain.masking import split_query
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.store import Store
from scheduler_app.store.destinations import CorruptDestination
from scheduler_app.store.paging import Page, PageRequest
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.deeds.creation import Preconditions

log = get_logger(__name__)

#: How often a change is tried while other changes come in between.
TRIES = 20
#: A test holds a thread of the API for no longer, and no more of them run at once.
MAX_TEST_SECONDS = 10.0
TESTS_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class DestinationTestResult:
    """What one call to a destination came to: the request's method and URL, which may hold secrets, and the
    verdict, which holds none; None in a dry run, which sends nothing."""

    method: str
    url: str = field(repr=False)
    event_id: str
    verdict: Verdict | None


#: How long one look at a receiver may take.
LOOK_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class ReceiverLook:
    """What one request to see whether a receiver answers came to."""

    is_reachable: bool | None
    """Any answer will do; None: it was not asked."""
    status_code: int | None = None
    error: str | None = None
    """Why there was no answer, or why it was not asked."""


@dataclass(frozen=True)
class DestinationService:
    """What people do with destinations.

    `check_action` raises InvalidField for a receiver that this deployment does not reach; `attempt` makes one
    attempt as a worker does, and is None if nothing may be sent; `limiter` knows how destinations are.
    """

    store: Store
    check_action: Callable[[Action], None]
    new_secret: Callable[[], str]
    attempt: Callable[[Event, Schedule, datetime], Verdict] | None
    limiter: Limiter | None
    tests: threading.BoundedSemaphore = field(
        default_factory=lambda: threading.BoundedSemaphore(TESTS_AT_ONCE)
    )

    def page(self, tenant: str, window: PageRequest) -> Page[Destination | CorruptDestination]:
        """The tenant's destinations, newest first."""
        return self.store.destinations.page(tenant, window)

    def get(self, destination_id: WholeId) -> Destination:
        """Raises NotFound, and Conflict for one whose document cannot be read."""
        found = self.store.destinations.get(destination_id)
        if found is None:
            raise NotFound(f"there is no destination {name_of(destination_id)}")
        if isinstance(found, CorruptDestination):
            raise Conflict(unreadable_reason(found))
        return found

    def put(
        self, destination_id: WholeId, draft: DestinationDraft, now: datetime, *, conditions: Preconditions
    ) -> tuple[Destination, bool]:
        """Makes the destination what the draft says, whatever it was; returns it, and whether it is new.

        Raises InvalidField, Conflict, and StaleVersion where `conditions` are not met.
        """
        name = name_of(destination_id)
        for _ in range(TRIES):
            old = self.store.destinations.get(destination_id)
            if isinstance(old, CorruptDestination):
                raise Conflict(unreadable_reason(old))
            _check_conditions(old, name, conditions)
            if old is None:
                check_new_name(name)
            destination = self._signed(draft.destination(destination_id, now, old), draft, now)
            self._check_receiver(destination)
            self._check_limits(destination)
            if old is not None and _content(destination) == _content(old):
                return old, False
            if old is None and self.store.destinations.insert(destination):
                log.info(
                    "destination.created", message="A destination was created", destination=destination_id
                )
                return destination, True
            if old is not None and self.store.destinations.update(destination, version=old.version):
                _log_change(destination)
                return destination, False
        raise _busy_conflict(name)

    def adopt(self, destination: Destination) -> bool:
        """Stores one that another installation had; False where there is one of its name. Raises
        InvalidField."""
        check_new_name(destination.name)
        self._check_receiver(destination)
        self._check_limits(destination)
        return self.store.destinations.insert(replace(destination, deleting=False))

    def edit(
        self,
        destination_id: WholeId,
        draft: DestinationDraft,
        now: datetime,
        *,
        version: int | None = None,
    ) -> Destination:
        """Changes what is given. Raises NotFound, InvalidField, Conflict, StaleVersion."""
        name = name_of(destination_id)
        for _ in range(TRIES):
            old = self.get(destination_id)
            _check_conditions(old, name, Preconditions(version=version))
            destination = self._signed(draft.edit(old, now), draft, now)
            if destination is old:
                return old
            if destination.version == old.version:  # only a secret was added
                destination = replace(destination, version=old.version + 1, updated_at=now)
            self._check_receiver(destination)
            self._check_limits(destination)
            if self.store.destinations.update(destination, version=old.version):
                _log_change(destination)
                return destination
        raise _busy_conflict(name)

    def delete(self, destination_id: WholeId, *, version: int | None = None) -> None:
        """Removes the destination and its secrets. Raises NotFound, StaleVersion, and Conflict while
        schedules name it."""
        name = name_of(destination_id)
        found = self.store.destinations.get(destination_id)
        if found is None:
            raise NotFound(f"there is no destination {name}")
        if isinstance(found, Destination):
            _check_conditions(found, name, Preconditions(version=version))
        at = found.version if isinstance(found, Destination) else None
        # Marked first, counted after: a request that stores its name reads the destination again afterwards.
        # One of the two always sees the other.
        if not self.store.destinations.begin_deletion(destination_id, version=at):
            raise StaleVersion(f"the destination {name} was changed at this moment: read it again")
        try:
            self._check_unused(destination_id)
        except Conflict:
            self.store.destinations.give_up_deletion(destination_id)
            raise
        if not self.store.destinations.delete(destination_id, version=at):
            raise StaleVersion(f"the destination {name} was changed at this moment: read it again")
        log.info("destination.deleted", message="A destination was deleted", destination=destination_id)

    def _check_unused(self, destination_id: WholeId) -> None:
        """Raises Conflict."""
        name = name_of(destination_id)
        users = self.store.destinations.in_use(destination_id)
        if users:
            raise Conflict(
                f"{users} schedule{'s' if users > 1 else ''} name{'' if users > 1 else 's'} the destination"
                f" {name}: give them another one first, or delete them"
            )
        messages = self.store.destinations.messages_of(destination_id)
        if messages:
            raise Conflict(
                f"{messages} message{'s' if messages > 1 else ''} wait{'' if messages > 1 else 's'} for the"
                f" destination {name}: cancel them first, or let them be delivered"
            )

    def flow(self, destination: Destination) -> FlowState | None:
        """How a destination with limits is at this moment; None without limits, and while it is unknown."""
        if self.limiter is None or not destination.is_limited:
            return None
        try:
            return self.limiter.look(destination)
        except self.limiter.unavailable as error:
            log.warning(
                "flow.unknown", message="The limits of destinations cannot be read", error=str(error)[:300]
            )
            return None

    def waiting(self, destination: Destination, flow: FlowState | None) -> int:
        """How many events and messages wait for the destination; `flow` is how it is at this moment."""
        return self.store.destinations.waiting(destination.id, in_flight=flow.in_flight if flow else None)

    def test(self, destination_id: WholeId, now: datetime) -> DestinationTestResult:
        """Sends one request as a schedule's would be sent, at once and outside of the limits. Raises
        NotFound, Conflict."""
        draft = ScheduleDraft(name="test", trigger={"on_demand": True}, destination=name_of(destination_id))
        test_id = whole_id(tenant_of(destination_id), "test")
        return self.try_out(draft.schedule(test_id, now, max_retries=0), now)

    def try_out(self, schedule: Schedule, now: datetime) -> DestinationTestResult:
        """Makes one HTTP request as a schedule's event would, at once and outside of all limits. Raises
        NotFound, Conflict."""
        test_id = whole_id(schedule.tenant, f"test-{secrets.token_hex(12)}")
        named = http_action(schedule.action).destination
        if named is not None:
            schedule = self.get(named).applied_to(schedule)
        schedule = replace(
            schedule, id=test_id, timeout_seconds=min(schedule.timeout_seconds, MAX_TEST_SECONDS)
        )
        test_event = event.manual(test_id, 1, now)
        request = http_action(schedule.action)
        if self.attempt is None:
            return DestinationTestResult(request.method, request.url, test_event.id, None)
        if not self.tests.acquire(blocking=False):
            raise Conflict(f"{TESTS_AT_ONCE} receivers are being tested at this moment; try again")
        try:
            verdict = self.attempt(test_event, schedule, now)
        finally:
            self.tests.release()
        return DestinationTestResult(request.method, request.url, test_event.id, verdict)

    def reach(self, schedule: Schedule, now: datetime) -> ReceiverLook | None:
        """Sees by one OPTIONS request, without headers, body or query, whether the receiver of a schedule
        answers; None for an action that makes no HTTP request. It is not asked while too many others are."""
        if not isinstance(schedule.action, HttpAction):
            return None
        if self.attempt is None or not self.tests.acquire(blocking=False):
            return ReceiverLook(None, error="too many receivers are being asked at this moment")
        try:
            action, named = schedule.action, schedule.action.destination
            if named is not None:
                action = http_action(self.get(named).applied_to(schedule).action)
            asked = replace(
                schedule,
                id=whole_id(schedule.tenant, f"test-{secrets.token_hex(12)}"),
                action=HttpAction(url=split_query(action.url)[0], method=OPTIONS),
                timeout_seconds=LOOK_SECONDS,
                completion="response",
                signing=None,
            )
            self.check_action(asked.action)
            verdict = self.attempt(event.manual(asked.id, 1, now), asked, now)
        except (NotFound, Conflict, InvalidField) as error:
            return ReceiverLook(None, error=str(error))
        finally:
            self.tests.release()
        return ReceiverLook(verdict.status_code is not None, verdict.status_code, verdict.error)

    def _check_receiver(self, destination: Destination) -> None:
        try:
            self.check_action(HttpAction(url=destination.url))
        except InvalidField as error:
            raise InvalidField("url", error.message) from None

    def _check_limits(self, destination: Destination) -> None:
        if self.limiter is not None:
            return
        for name in ("rate_per_second", "concurrency", "breaker"):
            if getattr(destination, name):
                raise InvalidField(
                    name,
                    "cannot be kept by this deployment: its broker does not count, so its operator must set"
                    " FLOW_CONTROL_URL to a Redis",
                )

    def _signed(self, destination: Destination, draft: DestinationDraft, now: datetime) -> Destination:
        if draft.signing is not True or destination.signing is not None:
            return destination
        return replace(destination, signing=Signing(self.new_secret(), now))


def unreadable_reason(found: CorruptDestination) -> str:
    """Why a destination cannot be used, and what to do."""
    if found.readable_elsewhere:
        return (
            f"the destination {name_of(found.id)} cannot be read by this process: {found.reason}. Run it with"
            " the SECRETS_KEY and the release of the other processes"
        )
    return (
        f"the stored document of the destination {name_of(found.id)} is corrupt: {found.reason}. Mend that"
        " field in MongoDB, or delete the destination and create it again"
    )


def _content(destination: Destination) -> Destination:
    """The destination without what every write changes."""
    return replace(destination, version=1, updated_at=destination.created_at)


def _check_conditions(found: Destination | None, name: str, conditions: Preconditions) -> None:
    if found is None:
        if conditions.present or conditions.version is not None:
            raise StaleVersion(f"If-Match asks for a destination {name}, and there is none")
    elif conditions.absent:
        raise StaleVersion(f"there is a destination {name} already, and the request forbids that")
    elif conditions.version not in (None, found.version):
        raise stale_version("destination", found.version, conditions.version)


def _busy_conflict(name: str) -> Conflict:
    return Conflict(f"the destination {name} is being changed by others at this moment; try again")


def _log_change(destination: Destination) -> None:
    log.info(
        "destination.changed",
        message="A destination was changed",
        destination=destination.id,
        version=destination.version,
    )
