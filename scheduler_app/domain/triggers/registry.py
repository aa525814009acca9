"""Every trigger kind that there is, and which of them a request asks for.

A new kind is one file in this package and one row here.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence.zones import timezone_named
from scheduler_app.domain.resource_fields import ResourceField
from scheduler_app.domain.triggers.cron.kind import Cron
from scheduler_app.domain.triggers.delay_seconds import DelaySeconds
from scheduler_app.domain.triggers.every_seconds import EverySeconds
from scheduler_app.domain.triggers.on_demand import OnDemand
from scheduler_app.domain.triggers.phrase.kind import Phrase
from scheduler_app.domain.triggers.rrule import RRule
from scheduler_app.domain.triggers.run_at import RunAt
from scheduler_app.domain.triggers.translation import TriggerContext, Value, check_value
from scheduler_app.domain.triggers.trigger import Trigger, TriggerKind

#: In the order in which errors and documentation name them.
KINDS: Final[tuple[TriggerKind, ...]] = (
    RRule(),
    Cron(),
    EverySeconds(),
    Phrase(),
    RunAt(),
    DelaySeconds(),
    OnDemand(),
)

#: Each kind by its name, which is the name of its main field.
BY_NAME: Final = {kind.name: kind for kind in KINDS}

#: Every wire field of every kind, by name. A field that several kinds share is the same in all of them.
FIELDS: Final[dict[str, ResourceField]] = {field.name: field for kind in KINDS for field in kind.fields}

#: "rrule, run_at, …": the main fields, of which a schedule has exactly one.
ONE_OF: Final = ", ".join(BY_NAME)


#: Fields of the wire by name; None is a field that was given as null, which takes it away.
Given = Mapping[str, Value | None]


def names_a_trigger(given: Given) -> bool:
    """Whether the main field of some kind was given, so that a new schedule could be made of it."""
    return any(given.get(name) is not None for name in BY_NAME)


def new_trigger(given: Given, context: TriggerContext) -> Trigger:
    """The trigger that `given` asks for. Raises InvalidField."""
    kind, written = _chosen(given, None)
    return Trigger.translated(kind, written, context)


def edited_trigger(
    given: Given, old: Trigger, context: TriggerContext, created_at: datetime, *, had_calendar: bool = False
) -> Trigger:
    """What an edit that gives these fields makes of `old`: `old` itself where it says nothing new, so that a
    rule sent again keeps the DTSTART it was pinned to. `had_calendar`: whether the schedule of `old` named a
    calendar. Raises InvalidField."""
    kind, written = _chosen(given, old)
    restated = kind.restates(written, old, created_at)
    if had_calendar != context.calendar and kind.uses_calendar(written, context):
        return Trigger.translated(kind, written, context)
    choices = (context.timezone, context.gap, context.overlap)
    if restated and choices == (old.timezone, old.gap, old.overlap):
        return old
    if restated and (old.pinned is None or not old.kind.uses_timezone(old.written)):
        timezone_named(context.timezone)
        return replace(old, timezone=context.timezone, gap=context.gap, overlap=context.overlap)
    if restated:
        return old.reread(context, created_at)
    return Trigger.translated(kind, written, context)


def _chosen(given: Given, old: Trigger | None) -> tuple[TriggerKind, dict[str, Value]]:
    """The kind and the fields as they are to be written: a given kind displaces the old one, and fields of
    the same kind that were not given stay."""
    for name, value in given.items():
        if value is not None:
            check_value(FIELDS[name], value)
    named = [name for name in BY_NAME if given.get(name) is not None]
    if len(named) > 1:
        raise InvalidField(named[1], f"give exactly one of {ONE_OF}, not both {named[0]} and {named[1]}")
    if named:
        kind = BY_NAME[named[0]]
    elif old is not None and given.get(old.kind.name, ...) is not None:
        kind = old.kind
    else:
        raise InvalidField(KINDS[0].name, f"give exactly one of {ONE_OF}")
    written = dict(old.written) if old is not None and old.kind is kind else {}
    own = {field.name for field in kind.fields}
    for name, value in given.items():
        if value is None:
            written.pop(name, None)
        elif name in own:
            written[name] = value
        else:
            of = " or ".join(each.name for each in KINDS if FIELDS[name] in each.fields)
            raise InvalidField(name, f"belongs to {of}, and the schedule has {kind.name}; leave it out")
    return kind, written
