"""Everything that belongs to a tenant, as lines of JSON."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduler_app.domain.instants import shown_instant
from scheduler_app.store import Store
from scheduler_app.store.tenant_exports import EXPORTED
from scheduler_app.store.tenant_imports import EXPORT_VERSION


@dataclass(frozen=True)
class TenantExportService:
    store: Store

    def pages(self, tenant: str, now: datetime, *, with_secrets: bool) -> Iterator[str]:
        """The lines of the export, some at a time, each with its end: a first line that says what it is, one
        for each document, and a last one with their counts: an export without it was broken off. Raises a
        STORE_FAULT."""
        counts = Counter[str]()
        begun: list[str] | None = [
            json.dumps(
                {
                    "rrule_scheduler_export": EXPORT_VERSION,
                    "tenant": tenant,
                    "exported_at": shown_instant(now),
                    "secrets": with_secrets,
                }
            )
        ]
        for collection in EXPORTED:
            after: Any = None
            while True:
                lines, after = self.store.tenant_exports.page(
                    collection, tenant, after, with_secrets=with_secrets
                )
                counts[collection] += len(lines)
                yield "".join(f"{line}\n" for line in [*(begun or ()), *lines])
                begun = None
                if after is None:
                    break
        yield json.dumps({"end": True, "documents": dict(counts)}) + "\n"
