"""A row of the table of a schedule's fields, and what a row reads its value from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from marshmallow.fields import Field

from scheduler_app.domain.calendars import CalendarUse
from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.recurrence import AnyRecurrence, Recurrence
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.triggers import Trigger, Value
from scheduler_app.store.encryption import SecretBox

AnyField = Field[Any]


@dataclass(frozen=True, slots=True)
class RecurrenceFacts:
    """What a schedule's recurrence says of itself at one instant."""

    warnings: list[str]
    description: str | None = None
    next_run_at: datetime | None = None
    """None also for a schedule that is not active."""
    text: str | None = None
    """None for a single instant."""
    dtstart: datetime | None = None

    @classmethod
    def of(cls, schedule: Schedule, now: datetime) -> "RecurrenceFacts":
        """The facts at `now`; a stored rule that no longer evaluates becomes a warning."""
        try:
            recurrence = schedule.recurrence()
            active = schedule.state is ScheduleState.ACTIVE
            following = recurrence.after(now) if active else None
            described = recurrence.description
        except InvalidRecurrence as error:
            return cls(warnings=[f"the stored rule no longer evaluates: {error}"])
        return cls(
            warnings=warnings_of(schedule.trigger, schedule.calendar, recurrence, now),
            description=described,
            next_run_at=following,
            text=recurrence.text if isinstance(recurrence, Recurrence) else None,
            dtstart=recurrence.dtstart if isinstance(recurrence, Recurrence) else None,
        )


def warnings_of(
    trigger: Trigger,
    calendar: CalendarUse | None,
    recurrence: AnyRecurrence,
    now: datetime,
    last: datetime | None = None,
) -> list[str]:
    """What may surprise of a trigger that observes `calendar`; `recurrence` is what they come to, and `last`
    its last occurrence that is looked at."""
    of_calendar = calendar.warnings(recurrence, trigger.timezone, now, last) if calendar else ()
    return [*trigger.warnings, *recurrence.warnings, *of_calendar]


@dataclass(frozen=True)
class ShownSchedule:
    """A schedule on its way into an answer or an export."""

    schedule: Schedule
    now: datetime
    secret_box: SecretBox | None = None
    """What an export's secrets are encrypted with; answers hold none."""

    @cached_property
    def portable_trigger(self) -> Mapping[str, Value]:
        """The trigger's fields with which a new schedule fires at the same instants, whenever it is made."""
        return self.schedule.trigger.portable(self.schedule.created_at)

    @cached_property
    def facts(self) -> RecurrenceFacts:
        """Evaluated once for all rows, and not at all for an export."""
        return RecurrenceFacts.of(self.schedule, self.now)


Show = Callable[[ShownSchedule], object]


@dataclass(frozen=True, kw_only=True)
class ScheduleField:
    """One field of a schedule on the wire.

    Everything that knows the field's JSON name follows from its row: the bodies of POST, PUT, bulk and
    preview, answers, exports, the client's keyword arguments, the options of `scheduler create`, the advice
    given for a misspelt name, and the tables in the manual.
    """

    name: str
    meaning: str
    """A sentence without its full stop, for the specification, the client, `--help` and the manual."""
    default: str | None = None
    """What a new schedule has when the field is not given, as the manual shows it; None: nothing."""
    input: AnyField | None = None
    """How a request gives it; None: answers show it, and no request may give it."""
    creation: AnyField | None = None
    """How POST and bulk take it, where that differs from PUT."""
    preview: AnyField | None = None
    """How a preview takes it; None: it has no influence on when a schedule fires."""
    output: AnyField | None = None
    """How an answer shows it; None: no answer shows it."""
    draft: str | None = None
    """The name of the Draft's field, where it is another one."""
    read: Callable[[Any], object] | None = None
    """Makes the Draft's value of what `input` has read. May raise ValidationError."""
    shown: Show | None = None
    """The value in answers; None is left out."""
    exported: Show | None = None
    """The value in exports where it is not the one in answers."""
    shown_meaning: str | None = None
    """The meaning in answers, where it is another one."""
    aliases: str = ""
    """Other names that people try for it, separated by spaces."""

    @property
    def draft_name(self) -> str:
        """The name of the Draft's field that holds it."""
        return self.draft or self.name

    def described(self, field: AnyField, meaning: str) -> AnyField:
        """`field` with its meaning for the specification, unless it says more itself."""
        field.metadata = {"description": meaning, **field.metadata}
        return field
