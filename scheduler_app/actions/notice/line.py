"""Which notice for a service is sent next, where many wait for few processes.

One takes its process for as long as its service is silent. Therefore a service has one process, and a tenant
no more than are left for all others: whatever it names, there is room for the next tenant.
"""

from collections import Counter, deque
from typing import Generic, NamedTuple, TypeVar

Waiting = TypeVar("Waiting")


class NoticeOwner(NamedTuple):
    """Whose notice it is, and for whom."""

    tenant: str
    receiver: str


class NoticeLine(Generic[Waiting]):
    """Tenants take turns. It belongs to one thread at a time."""

    def __init__(self, *, running: int, held: int) -> None:
        """How many notices may be under way at once, and how many may be held, of all tenants together."""
        self._most_running = running
        self._most_held = held
        self._waiting: dict[str, deque[tuple[NoticeOwner, Waiting]]] = {}
        """By tenant, in the order of their turns."""
        self._held: Counter[str] = Counter()
        self._running: Counter[str] = Counter()
        self._called: set[NoticeOwner] = set()

    def add(self, owner: NoticeOwner, notice: Waiting) -> bool:
        """False where its tenant holds as many as are left for all others."""
        if self._held[owner.tenant] >= self._most_held - self._held.total():
            return False
        self._held[owner.tenant] += 1
        self._waiting.setdefault(owner.tenant, deque()).append((owner, notice))
        return True

    def next(self) -> tuple[NoticeOwner, Waiting] | None:
        """The one that begins now; None while all that wait have to."""
        free = self._most_running - self._running.total()
        for tenant, queue in self._waiting.items():
            if self._running[tenant] >= free:
                continue
            place = next((at for at, (owner, _) in enumerate(queue) if owner not in self._called), None)
            if place is None:
                continue
            found = queue[place]
            del queue[place], self._waiting[tenant]
            if queue:
                self._waiting[tenant] = queue  # behind the others
            self._running[tenant] += 1
            self._called.add(found[0])
            return found
        return None

    def ended(self, owner: NoticeOwner) -> None:
        self._called.remove(owner)
        for counted in (self._running, self._held):
            counted[owner.tenant] -= 1
            if not counted[owner.tenant]:
                del counted[owner.tenant]
