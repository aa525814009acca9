"""The audit: who did what to what, when and why."""

from datetime import datetime

from scheduler_app.client import calls
from scheduler_app.client.calls import Listing, Steps, instants
from scheduler_app.client.methods import AsyncClient, SyncClient, listing, operation
from scheduler_app.client.record import Record


class AuditOperations:
    """Every method raises SchedulerError. They need the scope `admin`."""

    @listing
    def lines(
        self,
        *,
        who: str | None = None,
        what: str | None = None,
        resource: str | None = None,
        after: datetime | str | None = None,
        until: datetime | str | None = None,
    ) -> Listing[Record]:
        """Yields the lines, newest first: `at`, `who`, `what`, `resource`, `reason`, `before`, `after`, …;
        `resource` is a kind, or a kind, a slash and a name, such as `schedule/nightly`."""
        which = instants({"from": after, "to": until}) | {"who": who, "what": what, "resource": resource}
        return Listing("/api/v1/audit", "lines", Record.of, which)

    @operation
    def verify(self) -> Steps[Record]:
        """Reads the whole audit: `ok` tells whether each line is as it was written, `lines` how many are,
        `wrong` what is wrong with the next one, and `last_hash` is that of the last of them."""
        lines, after, last = 0, None, None
        while True:
            found: Record = yield calls.get("/api/v1/audit/verification", Record.of, {"after": after})
            lines, after, last = lines + found["lines"], found.get("next"), found.get("last_hash") or last
            if after is None:
                return Record.of({**found, "lines": lines, "last_hash": last})


class Audit(AuditOperations, SyncClient):
    """`Scheduler.audit`."""


class AsyncAudit(AuditOperations, AsyncClient):
    """`AsyncScheduler.audit`."""
