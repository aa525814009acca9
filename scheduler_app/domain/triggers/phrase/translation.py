"""A phrase translated: one meaning, or a refusal with the words that were not understood or the readings."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from itertools import zip_longest
from typing import Final

from scheduler_app.domain.recurrence.zones.zone import UnknownZone, find_zone
from scheduler_app.domain.recurrence.zones.zone_hint import better_zone
from scheduler_app.domain.triggers.kind import NotUnderstood, Translation, TriggerContext

from .clauses import After, At, Clause, InZone
from .kind import MAX_CHARACTERS
from .meaning.bag import Bag
from .meaning.once import once
from .meaning.outcome import Moment, Refused, Several
from .meaning.repeated import repeated, repeats
from .reading import Read, read
from .segments import each_time, segments, single_days
from .tokens import MAX_TOKENS, tokens_of
from .words import SECONDS_OF

_SHOWN: Final = 120
_STAMP: Final = len("20261124T090000")
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
    moment = moment_of(context)
    if reading.unknown:
        words = " ".join(reading.unknown)[:_SHOWN]
        raise _refusal(
            Refused(f"not understood: {words}; say it without, or in other words", reading.unknown),
            _readings_of(reading.clauses, moment),
        )
    try:
        return meaning_of(reading.clauses, moment)
    except Refused as refusal:
        raise _refusal(refusal, _with_less(reading.clauses, moment)) from None


def uses_timezone(phrase: str) -> bool:
    """Whether a phrase that was understood once means local times of the schedule's zone: it names no zone of
    its own, and is not "in 10 minutes"."""
    clauses = tuple(one.clause for one in read(tokens_of(phrase)).clauses)
    if any(isinstance(clause, InZone | At) for clause in clauses):
        return False
    elapsed = any(isinstance(clause, After) and clause.unit in SECONDS_OF for clause in clauses)
    return repeats(clauses) or not elapsed


def moment_of(context: TriggerContext) -> Moment:
    """When and where a phrase is said."""
    zone = find_zone(context.timezone)
    return Moment(
        context.at.astimezone(UTC), zone.info, zone.name, context.gap, context.overlap, context.calendar
    )


def _refusal(refused: Refused, readings: Sequence[Translation] = ()) -> NotUnderstood:
    return NotUnderstood("phrase", refused.message, not_understood=refused.words, readings=tuple(readings))


def _readings_of(clauses: tuple[Read, ...], moment: Moment) -> tuple[Translation, ...]:
    """What clauses mean alone: that, its several readings, or what they mean with one clause less."""
    try:
        return (meaning_of(clauses, moment),)
    except NotUnderstood as several:
        return several.readings
    except Refused:
        return _with_less(clauses, moment)


def _with_less(clauses: tuple[Read, ...], moment: Moment) -> tuple[Translation, ...]:
    """What clauses that contradict each other, or never happen together, mean without one of them, whichever
    it is; what repeats still repeats."""
    whole = tuple(one.clause for one in clauses)
    found: list[Translation] = []
    for index in range(len(whole)):
        rest = (*clauses[:index], *clauses[index + 1 :])
        if repeats(tuple(one.clause for one in rest)) != repeats(whole):
            continue
        try:
            meanings: tuple[Translation, ...] = (meaning_of(rest, moment),)
        except NotUnderstood as several:
            meanings = several.readings
        except Refused:
            continue
        found += [meaning for meaning in meanings if meaning not in found]
    return tuple(found[:MAX_READINGS])


def meaning_of(clauses: tuple[Read, ...], moment: Moment) -> Translation:
    """The meaning of the clauses, or of the parts that "and" joins. Raises NotUnderstood or Refused."""
    try:
        return _single(tuple(one.clause for one in clauses), moment)
    except Refused:
        days = single_days(clauses)
        if days is not None:
            return _on_single_days(days, moment)
        parts = segments(clauses)
        if parts is None:
            raise
    ways, reason = _ways(parts, moment)
    return _one_of([_together(way) for way in ways], reason)


def _ways(parts: Sequence[tuple[Clause, ...]], moment: Moment) -> tuple[list[list[Translation]], str]:
    """The ways in which parts can be read together, and why a person must be asked which is meant: one part
    alone has several readings."""
    ways: list[list[Translation]] = [[]]
    reason = ""
    for part in parts:
        try:
            meanings: Sequence[Translation] = (_single(part, moment),)
        except NotUnderstood as several:
            if not several.readings:
                raise
            meanings, reason = several.readings, several.message
        ways = [[*way, meaning] for way in ways for meaning in meanings][:MAX_READINGS]
    return ways, reason


def _one_of(readings: Sequence[Translation], reason: str) -> Translation:
    """The only reading; NotUnderstood with all of them where there is a reason to ask."""
    if not reason:
        return readings[0]
    raise _refusal(Refused(reason), readings[:MAX_READINGS])


def _together(found: list[Translation]) -> Translation:
    """Several recurrences as one. Raises Refused where one of them is more than rules."""
    lines = [line for one in found for line in (one.recurrence or "").split("\n")]
    if not all(line.startswith("RRULE:") for line in lines) or len({one.on_holiday for one in found}) > 1:
        raise Refused("these are two schedules; make two")
    rules = "\n".join(dict.fromkeys(lines))
    return Translation(rules, warnings=_warnings(found), on_holiday=found[0].on_holiday)


def _on_single_days(parts: list[tuple[Clause, ...]], moment: Moment) -> Translation:
    """Several days with times of their own: each once, unless every part may be meant to repeat."""
    ways, reason = _ways(parts, moment)
    readings = [_dates(way) for way in ways]
    again = each_time(parts)
    if again is None:
        return _one_of(readings, reason)
    repeating = [_together(way) for way in _ways(again, moment)[0]]
    either = [one for pair in zip_longest(repeating, readings) for one in pair if one is not None]
    return _one_of(either, "these days once, or each of them from now on? Say “every”")


def _dates(found: list[Translation]) -> Translation:
    """Several single local times as one list of dates."""
    dates = sorted((one.recurrence or "").removeprefix("RDATE:") for one in found)
    if not all(len(date) == _STAMP for date in dates):
        raise Refused("these are several schedules; make them one by one")
    return Translation(f"RDATE:{','.join(dict.fromkeys(dates))}", warnings=_warnings(found))


def _warnings(found: list[Translation]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(warning for one in found for warning in one.warnings))


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
    if zone is not None and len(zone.names) > 1:
        options = [[InZone((name,))] for name in zone.names]
        raise bag.ambiguity(zone, options, "this time zone can be read in several ways; give its IANA name")
    if zone is not None:
        moment = _in_zone(zone.names[0], moment)
    return repeated(bag, moment) if repeats(clauses) else once(bag, moment)


def _in_zone(name: str, moment: Moment) -> Moment:
    """The same moment, seen from the zone that the phrase names."""
    try:
        named = find_zone(name)
    except UnknownZone:
        raise Refused(f"{name} is no IANA time zone; {better_zone(name)}", (name,)) from None
    return replace(moment, zone=named.info, zone_name=named.name, names_zone=True)
