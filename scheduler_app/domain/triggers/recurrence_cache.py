"""The recurrences that were parsed last."""

from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime
from threading import Lock
from typing import Any, Final, NamedTuple

from scheduler_app.domain.recurrence import Gap, Overlap, Recurrence

#: How many recurrences are kept; the one used least recently goes first.
MAX_CACHED: Final = 1_024


class RecurrenceText(NamedTuple):
    """A recurrence's text with everything that its meaning depends on: the key of the cache."""

    text: str
    created_at: datetime
    timezone: str | None
    """None if it has no influence: the text names a zone, or an instant in UTC."""
    gap: Gap
    overlap: Overlap
    start_implied: bool = False
    """The DTSTART in the text was not given by the user, so no warning is about it."""
    stored: bool = False
    """The text is a pinned one, perhaps of an earlier release."""

    def read(self, checkpoint: Mapping[str, Any] | None = None) -> Recurrence:
        """Parses the text. Raises InvalidRecurrence."""
        return Recurrence.parse(
            self.text,
            created_at=self.created_at,
            timezone=self.timezone,
            gap=self.gap,
            overlap=self.overlap,
            start_implied=self.start_implied,
            stored=self.stored,
            checkpoint=dict(checkpoint) if checkpoint else None,
        )


class _RecurrenceCache:
    """A bounded cache of parsed recurrences: one request asks several times for the same one, and schedules
    made in bulk share theirs. Thread-safe."""

    def __init__(self) -> None:
        self._found: OrderedDict[RecurrenceText, Recurrence] = OrderedDict()
        self._lock = Lock()

    def read(self, text: RecurrenceText) -> Recurrence:
        """The parsed recurrence, from the cache if it is there. Raises InvalidRecurrence."""
        with self._lock:
            known = self._found.get(text)
            if known is not None:
                self._found.move_to_end(text)
                return known
        found = text.read()
        self.keep(text, found)
        return found

    def keep(self, text: RecurrenceText, found: Recurrence) -> None:
        """Adds a recurrence that is known to be what `text` means."""
        with self._lock:
            self._found[text] = found
            if len(self._found) > MAX_CACHED:
                self._found.popitem(last=False)

    def __len__(self) -> int:
        return len(self._found)


cache: Final = _RecurrenceCache()
