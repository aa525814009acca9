"""When a schedule fires: what was written, and what it was pinned to when it was given; what a kind of
triggers is; and a cache of the recurrences that were parsed last.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any, Final, NamedTuple, Protocol

from scheduler_app.domain.errors import InvalidField, InvalidRecurrence
from scheduler_app.domain.instants import OUTSIDE_OF_STORED_YEARS, check_storable
from scheduler_app.domain.recurrence import (
    AnyRecurrence,
    Gap,
    Never,
    Once,
    OnHoliday,
    Overlap,
    Recurrence,
    zone_data_version,
)
from scheduler_app.domain.recurrence.zones import timezone_named
from scheduler_app.domain.resource_fields import ResourceField
from scheduler_app.domain.stored_fields import LATEST
from scheduler_app.domain.triggers.translation import (
    NotUnderstood,
    Translation,
    TriggerContext,
    Value,
)


class TriggerKind(Protocol):
    """One way to write when a schedule fires: one file of this package, and a row in `registry`.

    Kinds subclass this explicitly and inherit the defaults.
    """

    @property
    def fields(self) -> tuple[ResourceField, ...]:
        """The wire fields; the first one is the main one, whose name is the kind's name."""

    @property
    def name(self) -> str:
        """The wire name of the main field: `rrule`, `run_at`, …"""
        return self.fields[0].name

    def translate(self, written: Mapping[str, Value], context: TriggerContext) -> Translation:
        """What `written` (the fields that were given, the main one among them, types and bounds checked)
        means. Pure: the same arguments give the same result. Raises InvalidField, or InvalidRecurrence."""

    def uses_timezone(self, written: Mapping[str, Value]) -> bool:
        """Whether timezone, gap and overlap change the meaning; if not, an edit of them keeps the old one."""
        return True

    def reread(self, trigger: "Trigger", context: TriggerContext, created_at: datetime) -> Translation:
        """What `trigger` of this kind, which was pinned to a recurrence, means in `context`, where its
        timezone, gap or overlap alone are changed: intervals and counts that began with it go on. Raises as
        `translate` does."""
        return self.translate(trigger.written, context)

    def uses_calendar(self, written: Mapping[str, Value], context: TriggerContext) -> bool:
        """Whether `written` means something else in `context` with a calendar than without one."""
        return False

    def names_start(self, written: Mapping[str, Value]) -> bool:
        """Whether the person wrote a DTSTART, so that warnings may speak of it."""
        return False

    def portable(self, trigger: "Trigger", created_at: datetime) -> Mapping[str, Value]:
        """The wire fields with which a new schedule, made at any time, fires at the same instants as
        `trigger` of this kind. They may be another kind's: a delay is exported as the instant it became."""
        return trigger.written

    def restates(self, written: Mapping[str, Value], trigger: "Trigger", created_at: datetime) -> bool:
        """Whether `written` (of this kind) says again what `trigger` (of any kind) says already, as it was
        written or as it is exported, so that an edit with it changes nothing."""
        return dict(written) in (dict(trigger.written), dict(trigger.portable(created_at)))


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


#: The fields that are the schedule's own: an error about one of them keeps its name.
_BESIDE = ("timezone", "gap", "overlap")


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a schedule fires. At most one of `pinned` and `instant` is set; with neither, it only runs on
    demand."""

    kind: TriggerKind
    written: Mapping[str, Value]
    """The wire fields as they were given, by their names."""
    pinned: str | None = None
    """The recurrence with its DTSTART made explicit (R5): parsing it again gives the same occurrences for
    ever."""
    instant: datetime | None = None
    timezone: str = "UTC"
    gap: Gap = "shift"
    overlap: Overlap = "first"
    warnings: tuple[str, ...] = field(default=(), compare=False)
    """What the translation warned of; the recurrence has warnings of its own."""
    on_holiday: OnHoliday | None = None
    """What the written text implies for holidays, unless the schedule says otherwise."""

    @classmethod
    def translated(
        cls, kind: TriggerKind, written: Mapping[str, Value], context: TriggerContext
    ) -> "Trigger":
        """The trigger that `written` means in `context`. Raises InvalidField, whose field is the kind's name
        unless a choice beside it (timezone, gap, overlap) is wrong."""
        return cls._made(kind, written, context, lambda: kind.translate(written, context))

    def reread(self, context: TriggerContext, created_at: datetime) -> "Trigger":
        """This trigger in `context`, where its timezone, gap or overlap alone are changed. Raises
        InvalidField."""
        kind, written = self.kind, self.written
        implied = not kind.names_start(written)
        return self._made(
            kind, written, context, lambda: kind.reread(self, context, created_at), start_implied=implied
        )

    @classmethod
    def _made(
        cls,
        kind: TriggerKind,
        written: Mapping[str, Value],
        context: TriggerContext,
        translation: Callable[[], Translation],
        *,
        start_implied: bool = False,
    ) -> "Trigger":
        timezone_named(context.timezone)
        timezone, gap, overlap = context.timezone, context.gap, context.overlap
        try:
            found = translation()
            parsed = None
            if found.recurrence is not None:
                zone = timezone if kind.uses_timezone(written) else None
                parsed = cache.read(
                    RecurrenceText(found.recurrence, context.at, zone, gap, overlap, start_implied)
                )
        except NotUnderstood as error:
            error.context = context
            raise
        except InvalidRecurrence as error:
            # Under the name of the field that the person wrote.
            own = kind.name == "rrule" or error.field in _BESIDE
            raise error if own else InvalidField(kind.name, error.message) from None
        except OverflowError:  # of a sum of times beyond the last that Python knows
            raise InvalidField(kind.name, OUTSIDE_OF_STORED_YEARS) from None
        if found.instant is not None:
            check_storable(found.instant, kind.name)
        if parsed is not None and parsed.dtstart.year >= LATEST.year:
            raise InvalidField(kind.name, f"begins after the year {LATEST.year - 1}, the last that is stored")
        trigger = cls(
            kind=kind,
            written=written,
            pinned=parsed.text if parsed else None,
            instant=found.instant,
            timezone=timezone,
            gap=gap,
            overlap=overlap,
            warnings=found.warnings,
            on_holiday=found.on_holiday,
        )
        if parsed:
            # The next question is about the pinned text, which means the same.
            cache.keep(trigger._pinned_text(context.at), parsed)
        return trigger

    @property
    def fires_by_itself(self) -> bool:
        """False for one that only runs on demand: its schedule stays active without a next occurrence."""
        return self.pinned is not None or self.instant is not None

    def recurrence(self, created_at: datetime, checkpoint: Mapping[str, Any] | None = None) -> AnyRecurrence:
        """What answers when it fires. `created_at` is the schedule's; `checkpoint` is what
        `Recurrence.checkpoint` gave earlier. Raises InvalidRecurrence when what is stored no longer parses.
        """
        if self.instant is not None:
            return Once(self.instant)
        if self.pinned is None:
            return Never()
        text = self._pinned_text(created_at)
        # Not with a checkpoint, which the cached recurrence would keep for others.
        return cache.read(text) if checkpoint is None else text.read(checkpoint)

    def recurrence_text(self, created_at: datetime) -> str | None:
        """The recurrence as text that means the same to whoever takes it; None for a trigger without one.

        What an earlier release pinned may leave out a part that is read otherwise today.
        """
        if self.pinned is None or "FREQ=YEARLY" not in self.pinned:
            return self.pinned
        try:
            return cache.read(self._pinned_text(created_at)).text
        except InvalidRecurrence:
            return self.pinned

    def portable(self, created_at: datetime) -> Mapping[str, Value]:
        """The wire fields with which a new schedule, made at any time, fires at the same instants."""
        return self.kind.portable(self, created_at)

    def zone_data(self) -> str | None:
        """The version of the zone data that occurrences are computed with; None if no zone matters."""
        if self.pinned is None or (self._zone in (None, "UTC") and "TZID" not in self.pinned):
            return None
        return zone_data_version()

    @property
    def _zone(self) -> str | None:
        """The timezone, if it has an influence."""
        return self.timezone if self.kind.uses_timezone(self.written) else None

    def _pinned_text(self, created_at: datetime) -> RecurrenceText:
        return RecurrenceText(
            self.pinned or "",
            created_at,
            self._zone,
            self.gap,
            self.overlap,
            start_implied=not self.kind.names_start(self.written),
            stored=True,
        )
