"""`phrase`: when, in English."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.resource_fields import Text
from scheduler_app.domain.triggers.run_at import at_local_time
from scheduler_app.domain.triggers.translation import (
    NotUnderstood,
    Translation,
    TriggerContext,
    Value,
    trigger_field,
    written_value,
)
from scheduler_app.domain.triggers.trigger import Trigger, TriggerKind

MAX_CHARACTERS: Final = 300
_PHRASE: Final = trigger_field(
    "phrase",
    Text(1, MAX_CHARACTERS),
    "When, in English: what is not understood is refused with the words that were not, what can be read in"
    " several ways with its readings",
    example="every other Tuesday at 9:34",
)


class Phrase(TriggerKind):
    """English words, translated once; nothing is guessed.

    `translation` and all that it knows of English is imported where a phrase is read: every process knows
    this kind, and beats and workers read no phrase.
    """

    fields = (_PHRASE,)

    def translate(self, written: Mapping[str, Value], context: TriggerContext) -> Translation:
        """What the phrase means when it is said at the context's instant. Raises NotUnderstood."""
        from .translation import translate

        return translate(written_value(written, "phrase", str), context)

    def uses_timezone(self, written: Mapping[str, Value]) -> bool:
        """Not for "in 10 minutes", and not where the phrase names a zone."""
        from .translation import uses_timezone

        return uses_timezone(written_value(written, "phrase", str))

    def reread(self, trigger: Trigger, context: TriggerContext, created_at: datetime) -> Translation:
        """The dates and times that it was pinned to: said again, "tomorrow" would be another day."""
        from scheduler_app.domain.recurrence.kept_start import without_zone

        recurrence = trigger.recurrence(created_at)
        if not isinstance(recurrence, Recurrence):
            return self.translate(trigger.written, context)
        if recurrence.is_once:
            return at_local_time("phrase", recurrence.dtstart.replace(tzinfo=None), context)
        if recurrence.timezone != trigger.timezone:
            return Translation(recurrence.text, warnings=trigger.warnings, on_holiday=trigger.on_holiday)
        text, warnings = without_zone(recurrence, context.timezone, context.at)
        return Translation(text, warnings=(*trigger.warnings, *warnings), on_holiday=trigger.on_holiday)

    def uses_calendar(self, written: Mapping[str, Value], context: TriggerContext) -> bool:
        """For business days, which are Monday to Friday without a calendar."""
        meanings = [self._meaning(written, replace(context, calendar=calendar)) for calendar in (True, False)]
        return meanings[0] != meanings[1]

    def _meaning(self, written: Mapping[str, Value], context: TriggerContext) -> Translation | None:
        """None if the phrase is refused."""
        try:
            return self.translate(written, context)
        except InvalidField:
            return None

    def portable(self, trigger: Trigger, created_at: datetime) -> Mapping[str, Value]:
        """The phrase where it means the same at any time; else the instant or the recurrence it became."""
        if trigger.instant is not None:
            return {"run_at": trigger.instant}
        recurrence = trigger.recurrence(created_at)
        if isinstance(recurrence, Recurrence) and recurrence.is_once:
            return _once(recurrence, trigger.timezone)
        if self._timeless(trigger, created_at):
            return trigger.written
        return {"rrule": trigger.recurrence_text(created_at) or ""}

    def _timeless(self, trigger: Trigger, created_at: datetime) -> bool:
        """Whether the recurrence names no day that depends on when the phrase is said."""
        # What is said of holidays can be read with a calendar, and perhaps only with one.
        context = TriggerContext(
            created_at,
            trigger.timezone,
            trigger.gap,
            trigger.overlap,
            calendar=trigger.on_holiday is not None,
        )
        try:
            lines = (self.translate(trigger.written, context).recurrence or "").split("\n")
        except NotUnderstood:
            return False  # it could be read when it was given, and cannot any more
        return all(
            line.startswith(("RRULE:", "EXRULE:")) and "UNTIL=" not in line and "COUNT=" not in line
            for line in lines
        )


def _once(recurrence: Recurrence, timezone: str) -> Mapping[str, Value]:
    """The fields of a single local time for a schedule in `timezone`."""
    if recurrence.timezone == "UTC":
        return {"run_at": recurrence.dtstart}
    if recurrence.timezone == timezone:
        return {"run_at": recurrence.dtstart.replace(tzinfo=None)}
    return {"rrule": recurrence.text}
