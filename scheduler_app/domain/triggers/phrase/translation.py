"""A phrase translated: one meaning, or a refusal with the words that were not understood or the readings."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from typing import Final

from scheduler_app.domain.recurrence.zones.zone import UnknownZone, find_zone
from scheduler_app.domain.recurrence.zones.zone_hint import better_zone
from scheduler_app.domain.triggers.kind import NotUnderstood, Translation, TriggerContext

from .clauses import Clause, InZone
from .kind import MAX_CHARACTERS
from .meaning.bag import Bag
from .meaning.once import once
from .meaning.outcome import Moment, Refused, Several
from .meaning.repeated import repeated, repeats
from .reading import Read, read
from .segments import segments
from .tokens import MAX_TOKENS, tokens_of

_SHOWN: Final = 120
MAX_READINGS: Final = 4
_MAX_TRIES: Final = 24


def translate(phrase: str, context: TriggerContext) -> Translation:
    """What an English phrase means when it is said at `context.at`, in `context.timezone` (a known zone).

    With a calendar in the context business days are the calendar's, and the result says how the rule rolls.
    Raises NotUnderstood.
    """
    if len(phrase) > MAX_CHARACTERS:
        raise _refusal(Refused(f"has more than {MAX_CHARACTERS} characters; say it in fewer words"))
    tokens = tokens_of(phrase)
    if not tokens:
        raise _refusal(Refused("is empty; say for example “every Tuesday at 9:34”"))
    if len(tokens) > MAX_TOKENS:
        raise _refusal(Refused(f"has more than {MAX_TOKENS} words; say it in fewer"))
    reading = read(tokens)
    if reading.unknown:
        words = " ".join(reading.unknown)[:_SHOWN]
        raise _refusal(
            Refused(f"not understood: {words}; say it without, or in other words", reading.unknown)
        )
    try:
        return meaning_of(reading.clauses, moment_of(context))
    except Refused as refusal:
        raise _refusal(refusal) from None


def is_repeated(phrase: str) -> bool:
    """Whether a phrase means a recurrence, and not a single instant."""
    return repeats(tuple(one.clause for one in read(tokens_of(phrase)).clauses))


def moment_of(context: TriggerContext) -> Moment:
    """When and where a phrase is said."""
    zone = find_zone(context.timezone)
    return Moment(
        context.at.astimezone(UTC), zone.info, zone.name, context.gap, context.overlap, context.calendar
    )


def _refusal(refused: Refused, readings: Sequence[Translation] = ()) -> NotUnderstood:
    return NotUnderstood("phrase", refused.message, not_understood=refused.words, readings=tuple(readings))


def meaning_of(clauses: tuple[Read, ...], moment: Moment) -> Translation:
    """The meaning of the clauses, or of the parts that "and" joins. Raises NotUnderstood or Refused."""
    try:
        return _single(tuple(one.clause for one in clauses), moment)
    except Refused:
        parts = segments(clauses)
        if parts is None:
            raise
    found = [_single(part, moment) for part in parts]
    lines = [line for one in found for line in (one.recurrence or "").split("\n")]
    if not all(line.startswith("RRULE:") for line in lines) or len({one.on_holiday for one in found}) > 1:
        raise Refused("these are two schedules; make two")
    warnings = tuple(dict.fromkeys(warning for one in found for warning in one.warnings))
    rules = "\n".join(dict.fromkeys(lines))
    return Translation(rules, warnings=warnings, on_holiday=found[0].on_holiday)


def _single(clauses: tuple[Clause, ...], moment: Moment) -> Translation:
    """The one meaning of clauses. Raises NotUnderstood with readings when there are several."""
    waiting = [clauses]
    found: list[Translation] = []
    reason, ask = "", False
    refusal: Refused | None = None
    for _ in range(_MAX_TRIES):
        if not waiting or len(found) == MAX_READINGS:
            break
        try:
            meaning = _compiled(waiting.pop(0), moment)
        except Several as several:
            reason, ask = reason or several.reason, ask or several.ask
            waiting = [*several.options, *waiting]
        except Refused as error:
            refusal = refusal or error
        else:
            if meaning not in found:
                found.append(meaning)
    if len(found) == 1 and not ask:
        return found[0]
    if found:
        raise _refusal(Refused(reason), found)
    raise refusal or Refused(reason or "this cannot be understood")


def _compiled(clauses: tuple[Clause, ...], moment: Moment) -> Translation:
    bag = Bag(clauses)
    zone = bag.take(InZone)
    if zone is not None:
        moment = _in_zone(zone, moment)
    return repeated(bag, moment) if repeats(clauses) else once(bag, moment)


def _in_zone(zone: InZone, moment: Moment) -> Moment:
    """The same moment, seen from the zone that the phrase names."""
    try:
        named = find_zone(zone.name)
    except UnknownZone:
        raise Refused(f"{zone.name} is no IANA time zone; {better_zone(zone.name)}", (zone.name,)) from None
    return replace(moment, zone=named.info, zone_name=named.name, names_zone=True)
