"""Tenants: who owns a schedule and its events.

An id says whose it is: `<tenant>:<id>`, and `<id>` alone for the tenant `default`. What is derived from a
schedule's id says it too: its events' ids, and with them the broker's messages and the Idempotency-Key that
receivers are sent. So no two tenants ever share an id, and none can take another's.
"""

import re

from scheduler_app.domain.errors import InvalidField

#: The tenant of everything whose id names none.
TENANT = "default"
#: It is in no id that people may choose, and in no tenant's name.
SEPARATOR = ":"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def whole_id(tenant: str, shown_id: str) -> str:
    """The id as it is stored and sent, of an id that is unique within its tenant only.

    Raises InvalidField for a tenant that is not 1 to 63 lower-case letters, digits and hyphens, and for an id
    that names a tenant already.
    """
    if not _NAME.fullmatch(tenant):
        raise InvalidField(
            "tenant", "must be 1 to 63 lower-case letters, digits and hyphens, and not begin with a hyphen"
        )
    if SEPARATOR in shown_id:
        raise InvalidField("id", f"must not have a {SEPARATOR!r} in it: that sets a tenant's name apart")
    return shown_id if tenant == TENANT else f"{tenant}{SEPARATOR}{shown_id}"


def tenant_of(whole_id: str) -> str:
    """The tenant that the id of a schedule or of an event names."""
    tenant, separator, _ = whole_id.partition(SEPARATOR)
    return tenant if separator else TENANT
