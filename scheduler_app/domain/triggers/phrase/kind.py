"""`phrase`: when, in English."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.triggers.kind import (
    FieldType,
    NotUnderstood,
    Translation,
    TriggerContext,
    TriggerField,
    TriggerKind,
    Value,
    written_value,
)

if TYPE_CHECKING:
    from scheduler_app.domain.triggers.trigger import Trigger

MAX_CHARACTERS: Final = 300
_PHRASE: Final = TriggerField(
    "phrase",
    FieldType.TEXT,
    "When, in English: what is not understood is refused with the words that were not, what can be read in"
    " several ways with its readings",
    example="every other Tuesday at 9:34",
    max_length=MAX_CHARACTERS,
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
        """Not for a single instant: with another timezone, "tomorrow" would be said again, on another day."""
        from .translation import is_repeated

        return is_repeated(written_value(written, "phrase", str))

    def uses_calendar(self, written: Mapping[str, Value], context: TriggerContext) -> bool:
        """For business days, which are Monday to Friday without a calendar."""
        meanings = [self._meaning(written, replace(context, calendar=calendar)) for calendar in (True, False)]
        return meanings[0] != meanings[1]

    def _meaning(self, written: Mapping[str, Value], context: TriggerContext) -> Translation | None:
        """None where the phrase is refused."""
        try:
            return self.translate(written, context)
        except InvalidField:
            return None

    def portable(self, trigger: "Trigger", created_at: datetime) -> Mapping[str, Value]:
        """The phrase where it means the same at any time; else the instant or the recurrence it became."""
        if trigger.instant is not None:
            return {"run_at": trigger.instant}
        if self._timeless(trigger, created_at):
            return trigger.written
        return {"rrule": trigger.recurrence_text(created_at) or ""}

    def _timeless(self, trigger: "Trigger", created_at: datetime) -> bool:
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
