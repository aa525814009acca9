"""How many messages may wait in each lane of the queue."""

import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scheduler_app.clock import monotonic
from scheduler_app.domain.lane import Lane, QueueLengths

#: How many messages may wait in each lane. A burst is not held up: workers fetch what has an eta at once.
MESSAGES = {Lane.URGENT: 50, Lane.FRESH: 150, Lane.LATE: 50}
#: With this many messages in the queue, beat sends no more.
MESSAGES_IN_QUEUE = MESSAGES[Lane.FRESH] + MESSAGES[Lane.LATE]
#: A program that triggers without end is urgent so often; the rest of what it asks for is fresh.
URGENT_A_SECOND = 20
ASK_AGAIN_SECONDS = 1.0
#: Workers fetch faster than that: what seems to be full is looked at again before anything is left to beat.
ASK_FULL_AGAIN_SECONDS = 0.01
#: A backlog is read once there is room for this many messages, not for each one that a worker takes.
LATE_REFILL = MESSAGES[Lane.LATE] // 4


@dataclass(frozen=True, slots=True)
class Room:
    """How many messages more each lane may take; not negative."""

    urgent: int
    fresh: int
    late: int

    @classmethod
    def beside(cls, lengths: QueueLengths) -> "Room":
        late = MESSAGES[Lane.LATE] - lengths.late
        return cls(
            urgent=max(0, MESSAGES[Lane.URGENT] - lengths.urgent),
            fresh=max(0, MESSAGES[Lane.FRESH] - lengths.fresh),
            late=late if late >= LATE_REFILL else 0,
        )

    def of(self, lane: Lane) -> int:
        return {Lane.URGENT: self.urgent, Lane.FRESH: self.fresh, Lane.LATE: self.late}[lane]

    def without(self, published: Sequence[Lane]) -> "Room":
        """The room that is left after messages in these lanes."""
        count = Counter(published)
        return Room(*(max(0, self.of(lane) - count[lane]) for lane in Lane))


class RoomEstimate:
    """The room for those who publish too often to ask the broker each time: what it was within the last
    second, less what this process has published since. Thread-safe."""

    def __init__(self, lengths: Callable[[], QueueLengths], seconds: Callable[[], float] = monotonic) -> None:
        self._lengths = lengths
        self._seconds = seconds
        self._lock = threading.Lock()
        self._asked_at = self._urgent_since = -math.inf
        self._urgent = URGENT_A_SECOND
        self._room = Room.beside(QueueLengths())

    def room(self) -> Room:
        """Raises what `lengths` raises."""
        with self._lock:
            now = self._seconds()
            if now - self._asked_at < (ASK_AGAIN_SECONDS if self._room.fresh else ASK_FULL_AGAIN_SECONDS):
                return self._room
            # Others go by what is known meanwhile: a broker that hangs holds one thread here and not all.
            self._asked_at = now
        room = Room.beside(self._lengths())
        with self._lock:
            if now - self._urgent_since >= 1.0:
                self._urgent_since, self._urgent = now, URGENT_A_SECOND
            self._room = Room(min(room.urgent, self._urgent), room.fresh, room.late)
            return self._room

    def published(self, lanes: Sequence[Lane]) -> None:
        with self._lock:
            self._room = self._room.without(lanes)
            self._urgent = max(0, self._urgent - lanes.count(Lane.URGENT))
