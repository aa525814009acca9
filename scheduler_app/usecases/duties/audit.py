"""What beats do with the audit: each line gets its place in the chain of its tenant, seconds after it was
written, so that whoever writes one waits for nobody."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.store import Store

LINES_A_PAGE: Final = 500
TENANTS_A_PAGE: Final = 50
SCHEDULES_A_PAGE: Final = 1_000
#: Of what older releases have kept.
EDITS_A_PAGE: Final = 500


@dataclass(frozen=True)
class AuditDuty:
    store: Store
    retention_days: int

    def chain_page(self, now: datetime) -> bool:
        """Gives lines of some tenants their places; whether there may be more. Raises a STORE_FAULT."""
        chain, more = self.store.audit_chain, False
        tenants = chain.tenants(limit=TENANTS_A_PAGE)
        for tenant in tenants:
            more |= chain.chain(tenant, limit=LINES_A_PAGE) == LINES_A_PAGE
        return more or len(tenants) == TENANTS_A_PAGE

    def move_page(self, now: datetime) -> bool:
        """Moves lines out of the documents of schedules; whether there may be more."""
        return self.store.audit_chain.move_owed(limit=SCHEDULES_A_PAGE) == SCHEDULES_A_PAGE

    def carry_page(self, now: datetime) -> bool:
        """Makes lines of what older releases have kept of edits; whether there may be more."""
        return self.store.audit_chain.carry_edits(limit=EDITS_A_PAGE) == EDITS_A_PAGE

    def prune_page(self, now: datetime) -> bool:
        """Removes lines that are older than the retention; whether there may be more."""
        before, chain = now - timedelta(days=self.retention_days), self.store.audit_chain
        pruned = [chain.prune(each, before, limit=LINES_A_PAGE) for each in chain.all_tenants()]
        return any(count == LINES_A_PAGE for count in pruned)
