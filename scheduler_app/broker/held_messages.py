"""The messages that this worker has taken and not yet claimed the events of."""

import threading
from collections import deque
from datetime import datetime, timedelta
from typing import Final, Protocol

#: A worker that is no further behind keeps up.
KEEPS_UP: Final = timedelta(seconds=2)


class HeldMessage(Protocol):
    """A message as kombu makes it. It is acknowledged once its events are claimed."""

    @property
    def acknowledged(self) -> bool: ...


class HeldMessages:
    """Thread-safe. Acknowledged messages are forgotten when one is asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: deque[tuple[datetime, HeldMessage]] = deque()

    def take(self, message: HeldMessage, due_at: datetime) -> None:
        """Notes a message that is to be worked on from `due_at` on."""
        with self._lock:
            self._held.append((due_at, message))
            while self._held and self._held[0][1].acknowledged:
                self._held.popleft()

    def forget(self) -> None:
        """Forgets all of them: with their connection the broker gives them to others."""
        with self._lock:
            self._held.clear()

    def behind_since(self, now: datetime) -> datetime | None:
        """Since when the oldest of them could have been worked on; None if this worker keeps up."""
        with self._lock:
            self._held = deque(each for each in self._held if not each[1].acknowledged)
            oldest = min((due_at for due_at, _ in self._held), default=now)
        return oldest if oldest < now - KEEPS_UP else None


#: Those of this process, whose consumer is Celery's to make.
held_messages: Final = HeldMessages()
