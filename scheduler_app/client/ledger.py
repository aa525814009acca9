"""The ledger: what was owed in each hour, and what became of it."""

from collections.abc import Sequence
from datetime import datetime

from scheduler_app.client import calls
from scheduler_app.client.calls import Call, Steps, instants
from scheduler_app.client.methods import AsyncClient, SyncClient, operation
from scheduler_app.client.record import Record


class LedgerOperations:
    """Every method raises SchedulerError."""

    @operation
    def hours(
        self,
        *,
        after: datetime | str | None = None,
        until: datetime | str | None = None,
        tag: str | None = None,
    ) -> Call[Sequence[Record]]:
        """The hours from `after` (default: a day before `until`) up to `until` (default: now): `owed`,
        `completed`, …, `missing`, `unexplained`. With `tag`, what was owed to the schedules that have it."""
        query = instants({"from": after, "to": until}) | {"tag": tag}
        return calls.get("/api/v1/ledger", calls.each(Record.of, "hours"), query)

    @operation
    def verify(self) -> Steps[Record]:
        """Reads the whole ledger: `ok` tells whether each line is as it was written, `lines` how many are,
        and `wrong` what is wrong with the next one."""
        lines, after = 0, None
        while True:
            found: Record = yield calls.get("/api/v1/ledger/verification", Record.of, {"after": after})
            lines, after = lines + found["lines"], found.get("next")
            if after is None:
                return Record.of({**found, "lines": lines})


class Ledger(LedgerOperations, SyncClient):
    """`Scheduler.ledger`."""


class AsyncLedger(LedgerOperations, AsyncClient):
    """`AsyncScheduler.ledger`."""
