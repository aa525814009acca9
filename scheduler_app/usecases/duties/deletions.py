"""Deletions of everything that belongs to a tenant, or goes with a tag: a beat removes it in batches, and
another one goes on where a beat was killed."""

from datetime import datetime

from scheduler_app.config import EXPAND_LEASE_SECONDS
from scheduler_app.domain.deletion import Deletion
from scheduler_app.store import Store
from scheduler_app.store.faults import Unavailable
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

#: Batches in a page: a beat does other duties in between.
BATCHES_A_PAGE = 10


class DeletionDuty:
    def __init__(self, store: Store) -> None:
        self._store = store

    def work_page(self, now: datetime) -> bool:
        """Goes on with one deletion; True when there is more to do at once. Raises a STORE_FAULT, after which
        the claim runs out."""
        deletions = self._store.deletions
        claimed = deletions.claim(now, lease_seconds=EXPAND_LEASE_SECONDS)
        if claimed is None:
            return False
        token, deletion = claimed
        if not deletion.counts and not deletions.close(deletion, token):
            return False
        if now < deletion.begins_at:
            deletions.advance(deletion.looked(now, found=False), token)
            return False
        if not self._are_schedules_deleted(deletion, now):
            deletions.advance(deletion.looked(now, found=True, at_once=True), token)
            return True
        removed = self._removed(deletion, token, now)
        if removed:
            deletions.advance(deletion.looked(now, found=True, at_once=True), token)
            return True
        if not deletions.is_nothing_left(deletion):
            # Attempts that workers are making, or a batch that others were just writing to.
            deletions.advance(deletion.looked(now, found=True), token)
        elif not deletion.may_end(now):
            deletions.advance(deletion.looked(now, found=False), token)
        elif deletions.finish(deletion, token, now):
            log.warning(
                "tenant.deleted" if deletion.tag is None else "tag.deleted",
                message="Everything was deleted that belonged to a tenant, or went with a tag",
                tenant=deletion.subject,
                tag=deletion.tag,
                deletion=deletion.id,
                counts=dict(deletion.counts),
            )
        return False

    def _are_schedules_deleted(self, deletion: Deletion, now: datetime) -> bool:
        """Of a tag: whether none of its schedules is left that sends anything."""
        return any(self._store.deletions.delete_schedules(deletion, now) for _ in range(BATCHES_A_PAGE))

    def _removed(self, deletion: Deletion, token: str, now: datetime) -> int:
        removed = 0
        for _ in range(BATCHES_A_PAGE):
            try:
                batch = self._store.deletions.remove_batch(deletion, token, now)
            except Unavailable as error:
                # Somebody wrote to one of them at the same moment: MongoDB undid the batch.
                log.info("deletion.broken_off", message="A batch is removed later", error=str(error)[:300])
                break
            removed += batch
            if batch == 0:
                break
        return removed
