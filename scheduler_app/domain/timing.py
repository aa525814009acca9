"""When a schedule fires: an RRULE as written with its pinned form, or a single instant."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock
from typing import Any, NamedTuple

from scheduler_app.domain.recurrence import InvalidRecurrence, Once, Recurrence, zone_data_version

KEPT = 1_024


@dataclass(frozen=True, slots=True)
class Timing:
    """When: an RRULE as written with its pinned form, or a single instant."""

    rrule: str | None = None
    pinned: str | None = None
    """The rule with its DTSTART made explicit (R5): parsing it again gives the same occurrences for ever."""
    run_at: datetime | None = None
    timezone: str = "UTC"
    gap: str = "shift"
    overlap: str = "first"

    @classmethod
    def of_rule(
        cls,
        rrule: str,
        *,
        created_at: datetime,
        timezone: str = "UTC",
        gap: str = "shift",
        overlap: str = "first",
    ) -> "Timing":
        """Raises InvalidRecurrence."""
        written = _Text(rrule, created_at, timezone, gap, overlap)
        parsed = _lately.read(written)
        timing = cls(rrule=rrule, pinned=parsed.text, timezone=timezone, gap=gap, overlap=overlap)
        # Whoever asks for it next asks for the pinned one, which is the same.
        _lately.keep(timing._pinned_at(created_at), parsed)
        return timing

    def recurrence(
        self, created_at: datetime, checkpoint: Mapping[str, Any] | None = None
    ) -> Recurrence | Once:
        """Raises InvalidRecurrence when what is stored no longer parses."""
        if self.run_at is not None:
            return Once(self.run_at)
        pinned = self._pinned_at(created_at)
        # Not with a checkpoint, which the recurrence would keep for others.
        return _lately.read(pinned) if checkpoint is None else pinned.read(checkpoint)

    def portable(self, created_at: datetime) -> str | None:
        """The rule as text that means the same to whoever takes it; None for a single instant.

        What an earlier release pinned may leave out a part that is read otherwise today.
        """
        if self.pinned is None or "FREQ=YEARLY" not in self.pinned:
            return self.pinned
        try:
            return _lately.read(self._pinned_at(created_at)).text
        except InvalidRecurrence:
            return self.pinned

    def zone_data(self) -> str | None:
        """The version of the zone data that occurrences are computed with; None where no zone matters."""
        if self.pinned is None or (self.timezone == "UTC" and "TZID" not in self.pinned):
            return None
        return zone_data_version()

    def same_as(self, other: "Timing") -> bool:
        """Whether both mean the same as written: a rule sent again unchanged keeps its pinned DTSTART, and
        so does one that comes back as it was exported, with that DTSTART in it."""
        if self.rrule is not None and self.rrule == other.pinned:
            return replace(other, rrule=self.rrule)._written() == self._written()
        return self._written() == other._written()

    def _written(self) -> tuple[object, ...]:
        return self.rrule, self.run_at, self.timezone, self.gap, self.overlap

    def _pinned_at(self, created_at: datetime) -> "_Text":
        implied = "DTSTART" not in (self.rrule or "").upper()
        return _Text(
            self.pinned or "", created_at, self.timezone, self.gap, self.overlap, implied, stored=True
        )


class _Text(NamedTuple):
    """What a recurrence is read from. `implied`: its DTSTART is the one that it was given, not asked for.
    `stored`: the text is a pinned one, perhaps of an earlier release."""

    text: str
    created_at: datetime
    timezone: str
    gap: str
    overlap: str
    implied: bool = False
    stored: bool = False

    def read(self, checkpoint: Mapping[str, Any] | None = None) -> Recurrence:
        return Recurrence.parse(
            self.text,
            created_at=self.created_at,
            timezone=self.timezone,
            gap=self.gap,
            overlap=self.overlap,
            start_implied=self.implied,
            stored=self.stored,
            checkpoint=dict(checkpoint) if checkpoint else None,
        )


class _Lately:
    """The recurrences read last: one request asks several times for the same rule, and schedules made in bulk
    share theirs. Thread-safe."""

    def __init__(self) -> None:
        self._found: OrderedDict[_Text, Recurrence] = OrderedDict()
        self._lock = Lock()

    def read(self, text: _Text) -> Recurrence:
        with self._lock:
            known = self._found.get(text)
            if known is not None:
                self._found.move_to_end(text)
                return known
        found = text.read()
        self.keep(text, found)
        return found

    def keep(self, text: _Text, found: Recurrence) -> None:
        with self._lock:
            self._found[text] = found
            if len(self._found) > KEPT:
                self._found.popitem(last=False)


_lately = _Lately()
