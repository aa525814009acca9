"""A phrase translated: one meaning, or a refusal with the words that were not understood or the readings;
also of phrases that join two schedules by "and", such as "mondays at 9 and fridays at 17".
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from itertools import zip_longest
from typing import Final

from scheduler_app.domain.recurrence.zones import UnknownZone, better_zone, find_zone
from scheduler_app.domain.triggers.phrase.clause_bag import (
    AmbiguousPhrase,
    ClauseBag,
    PhraseContext,
    PhraseRefused,
)
from scheduler_app.domain.triggers.phrase.clauses import (
    AfterClause,
    AtClause,
    Clause,
    Date,
    DayNumber,
    InZoneClause,
    MonthDaysClause,
    NamedDay,
    NthClause,
    OnceClause,
    OnClause,
    PartOfDayClause,
    PastHourClause,
    PeriodClause,
    RepeatClause,
    TimesClause,
    WeekdayAndDayClause,
    WeekdaysClause,
    WindowClause,
    YearlyDatesClause,
)
from scheduler_app.domain.triggers.phrase.grammar_days import yearly_dates
from scheduler_app.domain.triggers.phrase.once import single_time
from scheduler_app.domain.triggers.phrase.parser import ReadClause, read_clauses
from scheduler_app.domain.triggers.phrase.repeated import has_repetition, repeated_times
from scheduler_app.domain.triggers.phrase.tokens import MAX_TOKENS, tokens_of
from scheduler_app.domain.triggers.phrase.words import SECONDS_OF
from scheduler_app.domain.triggers.translation import NotUnderstood, Translation, TriggerContext

MAX_SEGMENTS = 4
_DAYS = (
    WeekdaysClause,
    MonthDaysClause,
    NthClause,
    YearlyDatesClause,
    RepeatClause,
    OnClause,
    WeekdayAndDayClause,
)
_WHOLE = (*_DAYS, TimesClause, PastHourClause, WindowClause, PeriodClause)


def _with_the_same_times(clauses: tuple[ReadClause, ...]) -> list[tuple[Clause, ...]] | None:
    """ "every friday and on the last day of the month at 9": days of several kinds, and the times of all."""
    if not clauses or not all(isinstance(read.clause, _WHOLE) for read in clauses):
        return None
    edge = next((read for read in (clauses[-1], clauses[0]) if isinstance(read.clause, TimesClause)), None)
    rest = [read for read in clauses if read is not edge]
    parts: list[list[Clause]] = [[]]
    for read in rest:
        if read.joined and any(isinstance(one, _DAYS) for one in parts[-1]):
            parts.append([])
        parts[-1].append(read.clause)
    if edge is None or any(isinstance(read.clause, TimesClause) for read in rest):
        return None
    if not 1 < len(parts) <= MAX_SEGMENTS or not all(has_repetition(tuple(part)) for part in parts):
        return None
    return [(*part, edge.clause) for part in parts]


def _with_their_times(clauses: tuple[ReadClause, ...]) -> list[tuple[Clause, ...]] | None:
    """ "every monday at 9 and friday at 17": parts that each have days and times of their own."""
    parts: list[list[Clause]] = [[]]
    for read in clauses:
        if read.joined and _is_whole(parts[-1]):
            parts.append([])
        if not isinstance(read.clause, _WHOLE):
            return None
        parts[-1].append(read.clause)
    if not 1 < len(parts) <= MAX_SEGMENTS or not all(_is_whole(part) for part in parts):
        return None
    if not has_repetition(tuple(parts[0])):
        return None  # "monday at 9 and tuesday at 10" may be two single days
    return [tuple(_repeating(one) for one in part) for part in parts]


def _is_whole(part: list[Clause]) -> bool:
    """Whether it says on which days, and when on them."""
    days = any(isinstance(one, _DAYS) and not _is_short(one) for one in part)
    return days and any(isinstance(one, TimesClause | PastHourClause) or _is_short(one) for one in part)


def _is_short(clause: Clause) -> bool:
    """Whether it is an interval within a day."""
    return isinstance(clause, RepeatClause) and clause.unit in SECONDS_OF


def single_days(clauses: tuple[ReadClause, ...]) -> list[tuple[Clause, ...]] | None:
    """The parts of "monday at 9 and tuesday at 10", each a single day with its time; None if the phrase
    has other parts, or if one of them repeats."""
    shared: list[Clause] = [
        one.clause for one in clauses if isinstance(one.clause, InZoneClause | OnceClause)
    ]
    rest = [one for one in clauses if one.clause not in shared]
    times = [one for one in rest if isinstance(one.clause, TimesClause)]
    if len(times) == 1 and times[0] in (rest[0], rest[-1]):
        shared.append(times[0].clause)  # the times of all
        rest.remove(times[0])
    parts: list[list[Clause]] = [[]]
    for one in rest:
        if one.joined and (len(times) == 1 or any(isinstance(each, TimesClause) for each in parts[-1])):
            parts.append([])
        parts[-1].append(one.clause)
    if not 1 < len(parts) <= MAX_SEGMENTS or not times:
        return None
    whole = [(*part, *shared) for part in parts]
    for part in whole:
        kinds = sorted(
            type(one).__name__
            for one in part
            if not isinstance(one, InZoneClause | OnceClause | PartOfDayClause)
        )
        if kinds not in (["OnClause", "TimesClause"], ["MonthDaysClause", "TimesClause"]) or has_repetition(
            part
        ):
            return None
    return whole


def _again(clause: Clause) -> Clause:
    """The same days from now on, every week, month or year, where there is a clause that says so."""
    if isinstance(clause, MonthDaysClause):
        return replace(clause, every=True)
    if isinstance(clause, OnClause) and len(clause.days) == 1:
        day = clause.days[0]
        if isinstance(day, Date) and yearly_dates((day,)):
            return YearlyDatesClause((day,), every=True)
        if isinstance(day, DayNumber) and not day.month:
            return MonthDaysClause((day.day,), every=True)
    return _repeating(clause)


def _repeating(clause: Clause) -> Clause:
    """ "every monday at 9 and friday at 17": the second day repeats as the first one does."""
    if isinstance(clause, OnClause) and len(clause.days) == 1:
        day = clause.days[0]
        if isinstance(day, NamedDay) and not day.which:
            return WeekdaysClause((day.weekday,))
    return clause


_SHOWN: Final = 120
_STAMP: Final = len("20261124T090000")
MAX_READINGS: Final = 4
_MAX_TRIES: Final = 24


def translate(phrase: str, context: TriggerContext) -> Translation:
    """What an English phrase means when it is said at `context.at`, in `context.timezone` (a known zone).

    With a calendar in the context business days are the calendar's, and the result says how the rule rolls.
    Raises NotUnderstood.
    """
    tokens = tokens_of(phrase)
    if not tokens:
        raise _refusal("is empty; say for example “every Tuesday at 9:34”")
    if len(tokens) > MAX_TOKENS:
        raise _refusal(f"has more than {MAX_TOKENS} words; say it in fewer")
    reading = read_clauses(tokens)
    moment = phrase_context(context)
    if reading.unknown:
        words = " ".join(reading.unknown)[:_SHOWN]
        message = f"not understood: {words}; say it without, or in other words"
        alone = _meanings(reading.clauses, moment)
        readings = _with_less(reading.clauses, moment) if alone is None else alone
        raise _refusal(message, reading.unknown, readings)
    try:
        return meaning_of(reading.clauses, moment)
    except PhraseRefused as refusal:
        raise _refusal(refusal.message, refusal.words, _with_less(reading.clauses, moment)) from None


def uses_timezone(phrase: str) -> bool:
    """Whether a phrase that was understood once means local times of the schedule's zone: it names no zone of
    its own, and is not "in 10 minutes"."""
    clauses = tuple(one.clause for one in read_clauses(tokens_of(phrase)).clauses)
    if any(isinstance(clause, InZoneClause | AtClause) for clause in clauses):
        return False
    elapsed = any(isinstance(clause, AfterClause) and clause.unit in SECONDS_OF for clause in clauses)
    return has_repetition(clauses) or not elapsed


def phrase_context(context: TriggerContext) -> PhraseContext:
    """When and where a phrase is said."""
    return PhraseContext(
        context.at.astimezone(UTC),
        find_zone(context.timezone).name,
        context.gap,
        context.overlap,
        calendar=context.calendar,
    )


def _refusal(
    message: str, words: tuple[str, ...] = (), readings: Sequence[Translation] = ()
) -> NotUnderstood:
    return NotUnderstood("phrase", message, not_understood=words, readings=tuple(readings))


def _meanings(clauses: tuple[ReadClause, ...], moment: PhraseContext) -> tuple[Translation, ...] | None:
    """What clauses mean, or their several readings; None if they are refused."""
    try:
        return (meaning_of(clauses, moment),)
    except NotUnderstood as several:
        return several.readings
    except PhraseRefused:
        return None


def _with_less(clauses: tuple[ReadClause, ...], moment: PhraseContext) -> tuple[Translation, ...]:
    """What clauses that contradict each other, or never happen together, mean without one of them, whichever
    it is; what repeats still repeats."""
    whole = tuple(one.clause for one in clauses)
    found: list[Translation] = []
    for index in range(len(whole)):
        rest = (*clauses[:index], *clauses[index + 1 :])
        if has_repetition(tuple(one.clause for one in rest)) == has_repetition(whole):
            found += [meaning for meaning in _meanings(rest, moment) or () if meaning not in found]
    return tuple(found[:MAX_READINGS])


def meaning_of(clauses: tuple[ReadClause, ...], moment: PhraseContext) -> Translation:
    """The meaning of the clauses, or of the parts that "and" joins. Raises NotUnderstood or PhraseRefused."""
    try:
        return _single(tuple(one.clause for one in clauses), moment)
    except PhraseRefused:
        days = single_days(clauses)
        if days is not None:
            return _on_single_days(days, moment)
        parts = _with_their_times(clauses) or _with_the_same_times(clauses)
        if parts is None:
            raise
    ways, reason = _ways(parts, moment)
    return _one_of([_together(way) for way in ways], reason)


def _ways(parts: Sequence[tuple[Clause, ...]], moment: PhraseContext) -> tuple[list[list[Translation]], str]:
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
    raise _refusal(reason, readings=readings[:MAX_READINGS])


def _together(found: list[Translation]) -> Translation:
    """Several recurrences as one. Raises PhraseRefused if one of them holds more than rules."""
    lines = [line for one in found for line in (one.recurrence or "").split("\n")]
    if not all(line.startswith("RRULE:") for line in lines) or len({one.on_holiday for one in found}) > 1:
        raise PhraseRefused("these are two schedules; make two")
    rules = "\n".join(dict.fromkeys(lines))
    return Translation(rules, warnings=_warnings(found), on_holiday=found[0].on_holiday)


def _on_single_days(parts: list[tuple[Clause, ...]], moment: PhraseContext) -> Translation:
    """Several days with times of their own: each once, unless every part may be meant to repeat."""
    ways, reason = _ways(parts, moment)
    readings = [_dates(way) for way in ways]
    again = [tuple(_again(one) for one in part) for part in parts]
    if not all(has_repetition(part) for part in again):
        return _one_of(readings, reason)
    repeating = [_together(way) for way in _ways(again, moment)[0]]
    either = [one for pair in zip_longest(repeating, readings) for one in pair if one is not None]
    return _one_of(either, "these days once, or each of them from now on? Say “every”")


def _dates(found: list[Translation]) -> Translation:
    """Several single local times as one list of dates."""
    dates = sorted((one.recurrence or "").removeprefix("RDATE:") for one in found)
    if not all(len(date) == _STAMP for date in dates):
        raise PhraseRefused("these are several schedules; make them one by one")
    return Translation(f"RDATE:{','.join(dict.fromkeys(dates))}", warnings=_warnings(found))


def _warnings(found: list[Translation]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(warning for one in found for warning in one.warnings))


def _single(clauses: tuple[Clause, ...], moment: PhraseContext) -> Translation:
    """The one meaning of clauses. Raises NotUnderstood with readings when there are several."""
    waiting = [clauses]
    found: list[Translation] = []
    reason, ask = "", False
    refusal: PhraseRefused | None = None
    for _ in range(_MAX_TRIES):
        if not waiting or len(found) == MAX_READINGS:
            break
        try:
            meaning = _compiled(waiting.pop(0), moment)
        except AmbiguousPhrase as several:
            reason, ask = reason or several.reason, ask or several.ask
            waiting = [*several.options, *waiting]
        except PhraseRefused as error:
            refusal = refusal or error
        else:
            if meaning not in found:
                found.append(meaning)
    if len(found) == 1 and not ask:
        return found[0]
    if found:
        raise _refusal(reason, readings=found)
    raise refusal or PhraseRefused(reason or "this cannot be understood")


def _compiled(clauses: tuple[Clause, ...], moment: PhraseContext) -> Translation:
    bag = ClauseBag(clauses)
    zone = bag.take(InZoneClause)
    if zone is not None and len(zone.names) > 1:
        options = [[InZoneClause((name,))] for name in zone.names]
        raise bag.ambiguity(zone, options, "this time zone can be read in several ways; give its IANA name")
    if zone is not None:
        moment = _in_zone(zone.names[0], moment)
    return repeated_times(bag, moment) if has_repetition(clauses) else single_time(bag, moment)


def _in_zone(name: str, moment: PhraseContext) -> PhraseContext:
    """The same moment, seen from the zone that the phrase names."""
    try:
        named = find_zone(name)
    except UnknownZone:
        raise PhraseRefused(f"{name} is no IANA time zone; {better_zone(name)}", (name,)) from None
    return replace(moment, timezone=named.name, names_zone=True)
