"""A phrase translated: one meaning, or a refusal with the words that were not understood or the readings."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from .clauses import Clause, InZone
from .meaning.bag import Bag
from .meaning.once import once
from .meaning.outcome import Meaning, Moment, Refused, Several
from .meaning.repeated import repeated, repeats
from .reading import Read, read
from .segments import segments
from .tokens import MAX_CHARACTERS, MAX_TOKENS, tokens_of

MAX_READINGS: Final = 4
_MAX_TRIES: Final = 24


class NotUnderstood(Exception):
    """A phrase that has no single meaning.

    `words` were not understood; `readings` are what it may mean, when it can be read in several ways.
    """

    def __init__(self, message: str, words: Sequence[str] = (), readings: Sequence[Meaning] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.words = tuple(words)
        self.readings = tuple(readings)


def translate(
    phrase: str,
    *,
    at: datetime,
    timezone: ZoneInfo,
    gap: str = "shift",
    overlap: str = "first",
    calendar: bool = False,
) -> Meaning:
    """What an English phrase means when it is said at the aware instant `at`, in `timezone`.

    `calendar` says that the schedule names one: business days are then those of the calendar. Raises
    NotUnderstood.
    """
    if len(phrase) > MAX_CHARACTERS:
        raise NotUnderstood(f"the phrase is longer than {MAX_CHARACTERS} characters; say it in fewer words")
    tokens = tokens_of(phrase)
    if not tokens:
        raise NotUnderstood("the phrase is empty; say for example “every Tuesday at 9:34”")
    if len(tokens) > MAX_TOKENS:
        raise NotUnderstood(f"the phrase has more than {MAX_TOKENS} words; say it in fewer")
    moment = Moment(at.astimezone(timezone), timezone, gap, overlap, calendar)
    reading = read(tokens, moment.today)
    if reading.unknown:
        words = " ".join(reading.unknown)
        raise NotUnderstood(f"not understood: {words}; say it without, or in other words", reading.unknown)
    return _meaning(reading.clauses, moment)


def _meaning(clauses: tuple[Read, ...], moment: Moment) -> Meaning:
    """The meaning of the clauses together, or of the parts that "and" joins."""
    try:
        return _single(tuple(one.clause for one in clauses), moment)
    except Refused as refusal:
        parts = segments(clauses)
        if parts is None:
            raise NotUnderstood(refusal.message, refusal.words) from None
    found = [_single_or_refused(part, moment) for part in parts]
    lines = [line for one in found for line in (one.recurrence or "").split("\n")]
    if not all(line.startswith("RRULE:") for line in lines) or len({one.on_holiday for one in found}) > 1:
        raise NotUnderstood("these are two schedules; make two")
    return Meaning("\n".join(dict.fromkeys(lines)), on_holiday=found[0].on_holiday)


def _single_or_refused(clauses: tuple[Clause, ...], moment: Moment) -> Meaning:
    try:
        return _single(clauses, moment)
    except Refused as refusal:
        raise NotUnderstood(refusal.message, refusal.words) from None


def _single(clauses: tuple[Clause, ...], moment: Moment) -> Meaning:
    """The one meaning of clauses. Raises NotUnderstood with readings when there are several."""
    waiting = [clauses]
    found: list[Meaning] = []
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
        raise NotUnderstood(reason, readings=found)
    raise refusal or Refused(reason or "this cannot be understood")


def _compiled(clauses: tuple[Clause, ...], moment: Moment) -> Meaning:
    bag = Bag(clauses)
    zone = bag.take(InZone)
    if zone is not None:
        moment = in_zone(zone, moment)
    return repeated(bag, moment) if repeats(clauses) else once(bag, moment)


def in_zone(zone: InZone, moment: Moment) -> Moment:
    """The same moment, seen from the zone that the phrase names."""
    try:
        info = ZoneInfo(zone.name)
    except (OSError, ValueError):
        raise Refused(f"{zone.name} is no IANA time zone", (zone.name,)) from None
    return replace(moment, at=moment.at.astimezone(info), zone=info, named_zone=zone.name)
