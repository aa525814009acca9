"""How people have everything deleted that goes with a tag: a customer that leaves."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from scheduler_app.domain.api_key import Caller, new_key_id
from scheduler_app.domain.deletion import Deletion, deletion_key
from scheduler_app.domain.errors import InvalidField, NotFound
from scheduler_app.domain.ids import whole_id
from scheduler_app.store import Store
from scheduler_app.store.tagged_documents import TagCounts
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

#: How many of anything are counted before a deletion.
MOST_COUNTED: Final = 100_000


@dataclass(frozen=True)
class DeletionService:
    store: Store

    def delete_tag(
        self, tenant: str, tag: str, confirm: str | None, caller: Caller, now: datetime
    ) -> Deletion:
        """Has everything deleted that goes with a tag: beats do that. Keys that are for this tag alone are
        deleted here, so that they make nothing new with it. `confirm` is the tag again. Returns the deletion,
        which may be at work already. Raises NotFound, and InvalidField where it is not confirmed."""
        if confirm != tag:
            raise InvalidField("confirm", f"must be {tag}, the tag whose schedules are deleted for ever")
        deletion = Deletion(
            id=whole_id(tenant, new_key_id()),
            subject=tenant,
            started_at=now,
            by=caller.name or "",
            next_due_at=now,
            tag=tag,
        )
        if (known := self.store.deletions.at_work(deletion.key)) is not None:
            return known
        if not self.store.deletions.has_tagged(tenant, tag):
            raise NotFound(f"nothing has the tag {tag}")
        # Before it begins: whoever asks again after a crash finds one that is at work.
        for key in self.store.api_keys.of(tenant):
            if set(key.tags) == {tag}:
                self.store.api_keys.delete(key.id)
        if not self.store.deletions.start(deletion):
            return self.store.deletions.at_work(deletion.key) or deletion
        log.warning("tag.deleting", message="Everything is being deleted that goes with a tag",
                    tenant=tenant, tag=tag, deletion=deletion.id)  # fmt: skip
        return deletion

    def count_tag(self, tenant: str, tag: str) -> TagCounts:
        """What would be deleted, up to `MOST_COUNTED` of each."""
        return self.store.deletions.count_tag(tenant, tag, most=MOST_COUNTED)

    def at_work(self, tenant: str, tag: str) -> Deletion | None:
        """The deletion of a tag that has begun, and is not over. Raises a STORE_FAULT."""
        return self.store.deletions.at_work(deletion_key(tenant, tag))

    def all(self, caller: Caller) -> list[Deletion]:
        """The newest first: for a key of a tenant those of its tags, for one of the installation all."""
        return self.store.deletions.newest(caller.tenant)

    def find(self, tenant: str, deletion_id: str, caller: Caller) -> Deletion:
        """Raises NotFound."""
        for own_id in dict.fromkeys((whole_id(tenant, deletion_id), deletion_id)):
            found = self.store.deletions.get(own_id)
            if found is not None and (caller.tenant is None or _is_of(found, caller.tenant)):
                return found
        raise NotFound(f"there is no deletion {deletion_id[:64]}")


def _is_of(deletion: Deletion, tenant: str) -> bool:
    """Whether the tenant's people see it."""
    return deletion.tag is not None and deletion.subject == tenant
