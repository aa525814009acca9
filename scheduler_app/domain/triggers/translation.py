"""The fields in which a trigger is written, what they are translated to, and what is shown of the readings
of a text that is ambiguous.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, TypeVar

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.instants import OUTSIDE_OF_STORED_YEARS, is_storable
from scheduler_app.domain.recurrence import (
    AnyRecurrence,
    Gap,
    Occurrence,
    Once,
    OnHoliday,
    Overlap,
    Recurrence,
)
from scheduler_app.domain.resource_fields import (
    FieldType,
    Flag,
    Moment,
    Null,
    ResourceField,
    Text,
    Whole,
    Word,
)

#: The value of one wire field as a person wrote it. A naive datetime is a local time in the schedule's zone.
Value = str | int | bool | datetime

V = TypeVar("V")


def trigger_field(
    name: str, type_: FieldType, meaning: str, *, example: Value, is_main: bool = True
) -> ResourceField:
    """A field of requests that belongs to a kind. Each kind has one main field, of which a schedule has
    exactly one."""
    return ResourceField(
        name,
        type_,
        meaning,
        default="exactly one required" if is_main else None,
        example=example,
        draft="trigger",
        previewed=True,
        null=Null.ALWAYS,
        shown_meaning=f"{meaning}, as it was written",
    )


def check_value(field: ResourceField, value: Value) -> None:
    """Raises InvalidField for a value that this field of a kind cannot hold."""
    wrong = _wrong(field.type, value)
    if wrong is not None:
        raise InvalidField(field.name, wrong)


def _wrong(type_: FieldType, value: Value) -> str | None:
    match type_:
        case Flag():
            return None if value is True else "must be true; leave it out otherwise"
        case Moment():
            if not isinstance(value, datetime):
                return "must be a time, such as 2030-01-05T12:00:00Z"
            return None if is_storable(value) else OUTSIDE_OF_STORED_YEARS
        case Whole():
            if type(value) is not int:
                return "must be a whole number"
            if type_.least is not None and value < type_.least:
                return f"must be at least {type_.least}"
            if type_.most is not None and value > type_.most:
                return f"must be at most {type_.most}"
            return None
    if not isinstance(value, str) or not value:
        return "must be text of at least one character"
    if isinstance(type_, Text) and type_.most is not None and len(value) > type_.most:
        return f"must have at most {type_.most} characters"
    if isinstance(type_, Word) and value not in type_.words:
        return f"must be {' or '.join(type_.words)}"
    return None


def written_value(written: Mapping[str, Value], name: str, type_: type[V]) -> V:
    """The value of the field `name`, which was checked before, as the Python type of the field's type:
    str, int, bool (TRUE) or datetime (TIME)."""
    value = written[name]
    if not isinstance(value, type_):
        raise TypeError(f"{name} has not been checked: it is of the type {type(value).__name__}")
    return value


@dataclass(frozen=True, slots=True)
class TriggerContext:
    """What a written trigger is read in."""

    at: datetime
    """The instant at which the trigger is given (aware): a missing start, a delay, "in 10 minutes" count from
    it."""
    timezone: str = "UTC"
    """An IANA name, not checked yet."""
    gap: Gap = "shift"
    overlap: Overlap = "first"
    timezone_given: bool = True
    """Whether the timezone was chosen; without a choice a single local time is refused."""
    active: bool = True
    """Whether the schedule is going to run: only then is a single instant in the past refused."""
    calendar: bool = False
    """Whether the schedule names a calendar, which then says what a business day is."""
    observing: Callable[[AnyRecurrence, OnHoliday | None], AnyRecurrence] | None = field(
        default=None, compare=False, repr=False
    )
    """What that calendar leaves of a recurrence, given what its text implies for holidays; None if no
    calendar is known."""

    def parse(self, text: str) -> Recurrence:
        """The recurrence of a text, as the schedule would read it. Raises InvalidRecurrence."""
        return Recurrence.parse(
            text, created_at=self.at, timezone=self.timezone, gap=self.gap, overlap=self.overlap
        )


@dataclass(frozen=True, slots=True)
class Translation:
    """What a written trigger means: a recurrence, a single instant, or neither (it never fires by itself)."""

    recurrence: str | None = None
    """RFC 5545 content lines, or a bare `FREQ=…`; a missing DTSTART is pinned to the second after
    `context.at`, a floating one is read in `context.timezone`."""
    instant: datetime | None = None
    """Aware."""
    warnings: tuple[str, ...] = ()
    """What may surprise the person who wrote it, beside what the recurrence itself warns of."""
    on_holiday: OnHoliday | None = None
    """What the schedule does on holidays of its calendar unless it says otherwise itself."""


class NotUnderstood(InvalidField):
    """A text that is ambiguous or not understood is refused, and nothing is guessed."""

    def __init__(
        self,
        field: str,
        message: str,
        *,
        not_understood: tuple[str, ...] = (),
        readings: tuple[Translation, ...] = (),
    ) -> None:
        super().__init__(field, message)
        self.not_understood = not_understood
        """The words that were not understood, as they were written."""
        self.readings = readings
        """What it may mean, where that is known: the person gives one of them instead."""
        self.context: TriggerContext | None = None
        """What the readings are read in; set where the trigger is made of its kind."""


#: How many occurrences tell readings apart.
SHOWN: Final = 3
_END: Final = datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ShownReading:
    """A reading that can be given as `rrule` or as `run_at` instead; a single local time as either, and only
    as a rule does it stay a local time."""

    recurrence: str | None
    run_at: datetime | None
    description: str
    occurrences: tuple[Occurrence, ...]


def shown_readings(error: NotUnderstood) -> tuple[ShownReading, ...]:
    """The readings of a refusal, seen from when and where the text was given; empty if that is unknown."""
    context = error.context
    return () if context is None else tuple(_shown(reading, context) for reading in error.readings)


def _shown(reading: Translation, context: TriggerContext) -> ShownReading:
    if reading.instant is not None:
        once = Once(reading.instant)
        found = once.occurrences(reading.instant, _END, limit=1)
        return ShownReading(None, reading.instant, once.description, tuple(found))
    written = context.parse(reading.recurrence or "")
    observed = context.observing(written, reading.on_holiday) if context.observing else written
    following = observed.occurrences(context.at, _END, limit=SHOWN)
    run_at = written.after(context.at) if written.is_once else None
    return ShownReading(written.text, run_at, observed.description, tuple(following))
