"""`cron`: a cron expression, and `cron_seconds`, which tells six fields apart; with warnings of what
surprises people about cron's own rules.
"""

from collections.abc import Iterator, Mapping
from typing import Final, cast

from scheduler_app.domain.resource_fields import Text, Word
from scheduler_app.domain.triggers.cron.expression import Expression, SecondsAt
from scheduler_app.domain.triggers.translation import (
    Translation,
    TriggerContext,
    Value,
    trigger_field,
    written_value,
)
from scheduler_app.domain.triggers.trigger import TriggerKind

#: Longer than the longest that has a use: every field with all its numbers listed.
MAX_CHARACTERS: Final = 500
_CRON: Final = trigger_field(
    "cron",
    Text(1, MAX_CHARACTERS),
    "A cron expression: five fields, @daily and the like, or six fields with seconds; L, W and # as in"
    " Quartz; 0 and 7 are Sunday",
    example="0 9 * * 1-5",
)
_CRON_SECONDS: Final = trigger_field(
    "cron_seconds",
    Word(("first", "last")),
    "Which of six fields of `cron` are the seconds, where both readings are valid",
    example="first",
    is_main=False,
)


class Cron(TriggerKind):
    """A cron expression, translated to the recurrence rules that fire at the same times.

    What reads it is imported where one is read: every process knows this kind, and beats and workers read no
    expression.
    """

    fields = (_CRON, _CRON_SECONDS)

    def translate(self, written: Mapping[str, Value], context: TriggerContext) -> Translation:
        """RRULE lines without a DTSTART: cron has no start of its own."""
        from scheduler_app.domain.triggers.cron.translation import cron_reading, lost_time_warning

        seconds_at = cast(SecondsAt, written["cron_seconds"]) if "cron_seconds" in written else None
        reading = cron_reading(written_value(written, "cron", str), seconds_at, context)
        warnings = list(cron_warnings(reading.expression))
        if (lost := lost_time_warning(reading.expression, context)) is not None:
            warnings.append(lost)
        return Translation(recurrence=reading.recurrence, warnings=tuple(warnings))


_CLOCK: Final = (("seconds", 60, "minute", 1), ("minutes", 60, "hour", 60), ("hours", 24, "day", 3600))


def cron_warnings(of: Expression) -> Iterator[str]:
    """Sentences about an expression that fires otherwise than many who write such a one expect."""
    yield from _uneven_steps(of)
    if not of.both_days and not (of.month_days.everything or of.weekdays.everything):
        yield (
            "It fires on each day that satisfies one of the two day fields, as in cron; for days that "
            "satisfy both, use rrule with BYMONTHDAY and BYDAY in one rule."
        )
    if of.month_days.written == "?" and any(letter.isdigit() for letter in of.weekdays.written):
        yield (
            "Weekdays are counted as in cron, where 0 and 7 are Sunday and 1 is Monday; Quartz counts Sunday "
            "as 1. Names such as MON mean the same in both."
        )


def _uneven_steps(of: Expression) -> Iterator[str]:
    for (name, size, larger, seconds), field in zip(_CLOCK, (of.seconds, of.minutes, of.hours), strict=True):
        step = _whole_step(field.written)
        if step and size % step:
            begins = f"{field.written} in the {name} begins anew each {larger}"
            left = size % step if step < size else 0
            units = f"{left} {name if left > 1 else name[:-1]}"
            steps = f"its last step takes {units}" if left else f"fires once, at {name[:-1]} 0"
            yield f"{begins}, and {steps}; every_seconds={step * seconds} repeats evenly."
    step = _whole_step(of.month_days.written)
    if step > 1:
        yield (
            f"{of.month_days.written} in the days of the month begins anew on each 1st; for every {step} "
            f"days, use rrule with FREQ=DAILY;INTERVAL={step} and a DTSTART."
        )


def _whole_step(written: str) -> int:
    """The step of a field that is `*/n`; 0 where it is anything else."""
    star, slash, step = written.partition("/")
    return int(step) if star == "*" and slash and step.isdigit() else 0
