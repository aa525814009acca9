"""The check of an action against the destination that it names."""

from scheduler_app.domain.action import Action
from scheduler_app.domain.destination import Destination, destination_of
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.http_action import http_action
from scheduler_app.domain.tenants import SEPARATOR, tenant_of
from scheduler_app.store import Store
from scheduler_app.store.destinations.documents import CorruptDestination

#: Destinations by id, as they were read for one request; None: there is none of that id.
Known = dict[str, Destination | CorruptDestination | None]


def check_named(
    store: Store, action: Action, known: Known | None = None, *, default_method: str | None = None
) -> None:
    """Raises InvalidField where an action names a destination that there is not, or that refuses it. `known`
    keeps what was read, for a request of many actions; `default_method` is as for `Destination.action`."""
    own_id = destination_of(action)
    if own_id is None:
        return
    known = {} if known is None else known
    if own_id not in known:
        known[own_id] = store.destinations.get(own_id, tenant=tenant_of(own_id))
    found = known[own_id]
    name = own_id.rpartition(SEPARATOR)[2]
    if found is None:
        raise InvalidField(
            "destination", f"there is no destination {name}: create it by PUT /api/destinations/{name}"
        )
    if isinstance(found, Destination):
        found.action(http_action(action), default_method=default_method)
