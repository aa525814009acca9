"""What schedules and messages name: calendars are looked up, destinations are checked."""

from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from scheduler_app.domain.action import Action
from scheduler_app.domain.calendars import NamedCalendar
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.http_action import HttpAction, http_action
from scheduler_app.domain.ids import WholeId, name_of, tenant_of, whole_id
from scheduler_app.domain.message import DEFAULT_MESSAGE_METHOD as MESSAGE_METHOD
from scheduler_app.domain.message import Message
from scheduler_app.domain.notification import Notifying
from scheduler_app.domain.resource_fields import NotGiven
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.store import Store
from scheduler_app.store.destinations import CorruptDestination
from scheduler_app.store.paging import PageRequest

_NAMES_LOOKED_AT: Final = 500
#: Destinations by id, as they were read for one request; None: there is none of that id.
KnownDestinations = dict[str, Destination | CorruptDestination | None]


def check_named_destination(
    store: Store, action: Action, known: KnownDestinations | None = None, *, default_method: str | None = None
) -> None:
    """Raises InvalidField where an action names a destination that there is not, or that refuses it. `known`
    keeps what was read, for a request of many actions; `default_method` is as for `Destination.action`."""
    own_id = action.destination
    if own_id is not None:
        _check(store, "destination", http_action(action), {} if known is None else known, default_method)


def check_notified_destinations(
    store: Store, tenant: str, asking: Schedule | Message, known: KnownDestinations | None = None
) -> None:
    """Raises InvalidField where `on_success` or `on_failure` of a tenant's schedule or message names a
    destination that there is not, or that takes no notification. `known` as in `check_named_destination`."""
    known = {} if known is None else known
    for field in Notifying:
        name: str | None = getattr(asking, field.value)
        if name is None:
            continue
        action = HttpAction(url="", destination=whole_id(tenant, name), method="")
        try:
            _check(store, field.value, action, known, MESSAGE_METHOD)
        except InvalidField as error:
            raise InvalidField(field.value, error.message) from None


def _check(
    store: Store, field: str, action: HttpAction, known: KnownDestinations, default_method: str | None
) -> None:
    own_id = str(action.destination)
    if own_id not in known:
        known[own_id] = store.destinations.get(own_id)
    found = known[own_id]
    name = name_of(own_id)
    if found is None or _is_being_deleted(found):
        raise InvalidField(
            field, f"there is no destination {name}: create it by PUT /api/v1/destinations/{name}"
        )
    if isinstance(found, Destination):
        found.action(action, default_method=default_method)


def deleted_destination_finder(
    store: Store, known: KnownDestinations
) -> Callable[[Schedule | Message, str], str | None]:
    """Reads those of `known` again that were there, after something that names them was written: whoever
    deletes one marks it before it counts who names it, so that one of the two always sees the other.

    Returns what tells of a schedule or message of a tenant which field names a destination that was deleted
    meanwhile; None if none does.
    """
    gone = {
        own_id
        for own_id, found in known.items()
        if found is not None and ((now := store.destinations.get(own_id)) is None or _is_being_deleted(now))
    }

    def field(asking: Schedule | Message, tenant: str) -> str | None:
        if not gone:
            return None
        if asking.action.destination in gone:
            return "destination"
        notified = {each.value: getattr(asking, each.value) for each in Notifying}
        return next(
            (field for field, name in notified.items() if name and whole_id(tenant, name) in gone), None
        )

    return field


def destination_deleted_error(field: str) -> InvalidField:
    """Why something that was just made is not there."""
    return InvalidField(field, "names a destination that was deleted at this moment: give another one")


def _is_being_deleted(found: Destination | CorruptDestination) -> bool:
    return isinstance(found, Destination) and found.deleting


#: The calendars that one request names, or what is wrong with the name.
KnownCalendars = dict[str, NamedCalendar | InvalidField]


def with_calendar(
    tenant: str, draft: ScheduleDraft, store: Store, known: KnownCalendars | None = None
) -> ScheduleDraft:
    """The draft with the tenant's calendar that it names. Raises InvalidField when there is none of that
    name. `known` keeps what was found, for a request of many drafts."""
    name = draft.calendar
    if name is None or isinstance(name, NotGiven):
        return draft
    known = {} if known is None else known
    if name not in known:
        try:
            known[name] = calendar_named(whole_id(tenant, name), store)
        except InvalidField as error:
            known[name] = error
    found = known[name]
    if isinstance(found, InvalidField):
        raise found
    return replace(draft, named_calendar=found)


def calendar_named(calendar_id: WholeId, store: Store) -> NamedCalendar:
    """The calendar that a schedule is to observe. Raises InvalidField, with names that come near."""
    found, name = store.calendars.known(calendar_id), name_of(calendar_id)
    if isinstance(found, NamedCalendar):
        return found
    if found is not None:
        raise InvalidField("calendar", f"{name} cannot be read: {found.reason}")
    names = [
        each.name
        for each in store.calendars.page(tenant_of(calendar_id), PageRequest(limit=_NAMES_LOOKED_AT)).rows
    ]
    near = get_close_matches(name, names, n=3)
    raise InvalidField(
        "calendar",
        f"there is no calendar {name}; make it by PUT /api/v1/calendars/{name}"
        + (f", or take {' or '.join(near)}" if near else ""),
    )
