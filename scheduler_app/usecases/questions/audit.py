"""What people ask of the audit: its lines, and whether they are as they were written."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from scheduler_app.domain.audit import AuditLine
from scheduler_app.domain.hash_chain import Verification, verify
from scheduler_app.store import Store
from scheduler_app.store.audit import AuditFilter
from scheduler_app.store.paging import Page, PageRequest

#: The lines that one call verifies, and those that an export reads at a time.
MOST_VERIFIED: Final = 5_000
EXPORTED_AT_ONCE: Final = 500


@dataclass(frozen=True)
class AuditQuestions:
    store: Store

    def page(self, tenant: str, window: PageRequest, which: AuditFilter) -> Page[AuditLine]:
        """A tenant's lines, newest first. Raises a STORE_FAULT."""
        return self.store.audit.page(tenant, window, which)

    def pages(self, tenant: str, window: PageRequest, which: AuditFilter) -> Iterator[list[AuditLine]]:
        """All of them, newest first, page by page as they are asked for. Raises a STORE_FAULT."""
        asked: PageRequest | None = replace(window, limit=EXPORTED_AT_ONCE)
        while asked is not None:
            found = self.store.audit.page(tenant, asked, which)
            yield found.rows
            asked = replace(asked, after=found.next) if found.next else None

    def verify(self, tenant: str, after: int = 0) -> tuple[Verification, int | None, str]:
        """Whether each of the next lines after the number `after` has the hash that the line after it names;
        the number where to go on, None at the end; and the hash of the last line that was read. Raises a
        STORE_FAULT."""
        chain = self.store.audit_chain
        known = chain.links(tenant, after - 1, limit=1) if after else []
        links = chain.links(tenant, after, limit=MOST_VERIFIED)
        first = known[0] if known and known[0].number == after else None
        found = verify(links, first=first)
        is_last = len(links) < MOST_VERIFIED or found.wrong is not None
        last = links[found.lines - 1].hash if found.lines else ""
        return found, None if is_last else links[-1].number, last
