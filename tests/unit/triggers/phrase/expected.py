"""What a table of phrases expects, evaluated by python-dateutil, which shares nothing with our engine.

The tables' notation stands at the head of `phrases.txt`.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from dateutil.rrule import rrulestr

#: Wednesday.
SAID_AT = datetime.fromisoformat("2026-11-18T10:15:30")
SHOWN = 25
_SHORT = {
    "WD": "BYDAY=MO,TU,WE,TH,FR",
    "BYHOUR=ALL": "BYHOUR=" + ",".join(map(str, range(24))),
}


@dataclass(frozen=True)
class Row:
    """A phrase, what kind of answer is right, and the answers themselves."""

    phrase: str
    kind: str
    """rule, every, once, unclear or no"""
    answers: tuple[str, ...] = ()
    may_refuse: bool = False
    within: timedelta = timedelta()


def rows(file: str) -> list[Row]:
    """The rows of a table beside this file."""
    lines = (Path(__file__).parent / file).read_text().splitlines()
    return [_row(line) for line in lines if "=>" in line and not line.startswith("#")]


def _row(line: str) -> Row:
    phrase, _, expected = (part.strip() for part in line.partition("=>"))
    expected, _, note = (part.strip() for part in expected.partition("#"))
    may_refuse = "may refuse" in note
    tolerance = re.search(r"within ([\d.]+)", note)
    within = timedelta(seconds=float(tolerance[1])) if tolerance else timedelta()
    if expected.startswith("no:"):
        return Row(phrase, "no", tuple(expected[3:].split()))
    if expected.startswith("unclear:"):
        return Row(phrase, "unclear", tuple(part.strip() for part in expected[8:].split(" / ")))
    kind = expected.split()[0] if expected.split()[0] in ("once", "every") else "rule"
    answers = tuple(part.strip() for part in expected.split(" | "))
    return Row(phrase, kind, answers, may_refuse, within)


def occurrences(answer: str) -> list[datetime]:
    """The first local times of an answer, after the phrase was said."""
    if answer.startswith("once "):
        return [_moment(answer.removeprefix("once "))]
    if answer.startswith("each "):
        return [_moment(one) for one in answer.removeprefix("each ").split(", ")]
    found: set[datetime] = set()
    gone: set[datetime] = set()
    kept, *left_out = answer.split(" - ")
    start = re.search(r"(?:from|DTSTART:) ?([\dT:-]+(?: [\d:]+)?)", kept)
    for rule in kept.split(" + "):
        if rule.startswith(("DTSTART", "EXDATE", "EXRULE")):
            if rule.startswith("EXDATE:"):
                gone.add(_moment(rule.removeprefix("EXDATE:")))
            elif rule.startswith("EXRULE:"):
                gone.update(_times(rule, None))
            continue
        found.update(_times(rule, None if start is None else _moment(start[1])))
    for rule in left_out:
        gone.update(_times(rule, None))
    return sorted(found - gone)[:SHOWN]


def _times(rule: str, start: datetime | None) -> list[datetime]:
    body, _, times = rule.partition("@")
    body = re.sub(r"from .*", "", body).strip()
    times = re.sub(r"from .*", "", times).strip()
    for short, long in _SHORT.items():
        body = re.sub(rf"\b{short}\b", long, body)
    body = re.sub(r"^(?:RRULE:|EXRULE:)?(?:FREQ=)?", "RRULE:FREQ=", body)
    found: list[datetime] = []
    for time in times.split(", ") if times else [""]:
        hour, minute, second = ([int(piece) for piece in time.split(":")] + [0, 0])[:3] if time else (0, 0, 0)
        timed = f"{body};BYHOUR={hour};BYMINUTE={minute};BYSECOND={second}" if time else body
        begin = start or SAID_AT + timedelta(seconds=1)
        evaluated = rrulestr(timed, dtstart=begin)
        later = (moment for moment in evaluated if moment > SAID_AT)
        found += islice(later, SHOWN * 2)
    return found


def _moment(text: str) -> datetime:
    """20261118T101530, 2026-11-18T10:15:30, or 2026-11-18 9:00 (naive)."""
    date, _, clock = text.strip().replace("T", " ").partition(" ")
    if "-" not in date:
        return datetime.fromisoformat(f"{date}T{clock}")
    hour, minute, second = ([int(piece) for piece in clock.split(":") if piece] + [0, 0, 0])[:3]
    return datetime.fromisoformat(date) + timedelta(hours=hour, minutes=minute, seconds=second)
