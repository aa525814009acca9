"""Removes what has ended, of tenants that keep it for less time than the installation does."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from scheduler_app.store import Store
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

DOCUMENTS_A_PAGE: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Round:
    """How far a tenant's events were looked at."""

    tenant: str
    before: datetime
    reached: datetime | None = None
    removed: int = 0


class TenantRetention:
    """A round goes through all such tenants, page by page and in turn. Any number of beats may do it at
    once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._left: list[_Round] = []

    def prune_page(self, now: datetime) -> bool:
        """Removes a page of one tenant; True when there is more to do in this round. Raises a STORE_FAULT."""
        if not self._left:
            kept = self._store.tenants.retentions()
            self._left = [_Round(tenant, now - kept[tenant]) for tenant in sorted(kept)]
        if not self._left:
            return False
        at_work, *self._left = self._left
        page = self._store.ended_work.remove_events(
            at_work.tenant, at_work.before, reached=at_work.reached, limit=DOCUMENTS_A_PAGE
        )
        removed = at_work.removed + page.count
        if page.reached is not None:
            self._left.append(_Round(at_work.tenant, at_work.before, page.reached, removed))
        else:
            ended = self._store.ended_work
            removed += ended.remove_causes(at_work.tenant, at_work.before, limit=DOCUMENTS_A_PAGE)
            removed += ended.remove_redrives(at_work.tenant, at_work.before, limit=DOCUMENTS_A_PAGE)
            if removed:
                log.info(
                    "tenant.pruned",
                    message="What a tenant keeps no longer was removed",
                    tenant=at_work.tenant,
                    count=removed,
                    ended_before=at_work.before.isoformat(),
                )
        return bool(self._left)
