"""What `why` says agrees with the evaluator, for random sets and instants.

An ordinary run asks about 40 pairs of a set and an instant, the same ones each time; `make long` asks
about 10,000. Another set finds more than another instant of the same set, which takes as long.
"""

from collections import Counter
from datetime import datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest

from scheduler_app.domain.recurrence import InvalidRecurrence, Reason, Recurrence
from scheduler_app.domain.recurrence.timeline import LIMIT
from scheduler_app.domain.recurrence.why.set_reasons import ExplainedRecurrence, WholeBudget, verdict
from tests.unit.recurrence.random_sets import FIRST, random_set

SECOND = timedelta(seconds=1)
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
#: Without these parts or lines, the code's own and those that are applied after it, the instant occurs.
LATER = {
    "UNTIL": ("UNTIL",),
    "COUNT": ("COUNT",),
    "BYSETPOS": ("BYSETPOS", "UNTIL", "COUNT"),
    "EXDATE": ("EXDATE", "EXRULE"),
    "EXRULE": ("EXDATE", "EXRULE"),
}
#: What the local clock must show for a part to be satisfied.
SHOWS = {
    "BYMONTH": lambda local: local.month,
    "BYHOUR": lambda local: local.hour,
    "BYMINUTE": lambda local: local.minute,
    "BYSECOND": lambda local: local.second,
}


def instants(random: Random, recurrence: Recurrence, number: int) -> list[datetime]:
    """Occurrences, their neighbours, and instants that have nothing to do with them."""
    found: list[datetime] = []
    for _ in range(number):
        near = FIRST + timedelta(seconds=random.randrange(-(10**7), 10 ** random.choice([6, 8, 9])))
        after = recurrence.after(near)
        nudge = random.choice([0, 0, 1, -1, 3600, -3600, 86_400, -86_400, 604_800, 31 * 86_400])
        found.append(near if after is None or random.random() < 0.2 else after + nudge * SECOND)
    return found


def pairs(seed: int, number: int, of_each_set: int) -> list[tuple[Recurrence, datetime]]:
    random = Random(seed)
    found: list[tuple[Recurrence, datetime]] = []
    while len(found) < number:
        text, zone = random_set(random)
        gap, overlap = random.choice(["shift", "skip"]), random.choice(["first", "last"])
        try:
            made = Recurrence.parse(text, created_at=FIRST, timezone=zone, gap=gap, overlap=overlap)
            found += [(made, instant) for instant in instants(random, made, of_each_set)]
        except InvalidRecurrence:
            continue
    return found[:number]


def without(text: str, part: str) -> str:
    """The text without the part in any of its lines, or without such lines."""
    lines = [line for line in text.split("\n") if not line.startswith(part)]
    return "\n".join(";".join(p for p in line.split(";") if not p.startswith(f"{part}=")) for line in lines)


def check_reason(recurrence: Recurrence, instant: datetime, reason: Reason) -> None:
    """Holds a reason against the rules that are left without it, or against the clock."""
    local = instant.astimezone(ZoneInfo(recurrence.timezone))
    rule = reason.rule or ""
    if reason.code in LATER:
        text = recurrence.text
        if reason.rule is not None and reason.code != "EXRULE":
            text = f"{text.split(chr(10))[0]}\nRRULE:{reason.rule}"
        for part in LATER[reason.code]:
            text = without(text, part)
        rest = Recurrence.parse(
            text, created_at=FIRST, gap=recurrence.gap, overlap=recurrence.overlap, stored=True
        )
        assert rest.after(instant, inclusive=True) == instant
    elif reason.code in SHOWS and f"{reason.code}=" in rule:
        values = rule.partition(f"{reason.code}=")[2].partition(";")[0].split(",")
        assert str(SHOWS[reason.code](local)) not in values
    elif reason.code == "BYDAY" and "BYDAY=" in rule:
        values = rule.partition("BYDAY=")[2].partition(";")[0].split(",")
        assert WEEKDAYS[local.weekday()] not in values
    elif reason.code == "BYMONTHDAY" and "BYMONTHDAY=" in rule:
        values = rule.partition("BYMONTHDAY=")[2].partition(";")[0].split(",")
        assert str(local.day) not in values
    elif reason.code == "DTSTART":
        assert instant < recurrence.dtstart or "\nRRULE" not in recurrence.text or "overlap" in reason.message
    elif reason.code == "INTERVAL":
        assert "INTERVAL=" in rule


def check(recurrence: Recurrence, instant: datetime) -> str:
    """Asks why, holds the answer against the evaluator, and returns the code of the first reason."""
    steps = WholeBudget()
    found = verdict(ExplainedRecurrence(recurrence._set, recurrence._set, recurrence._start), instant, steps)
    fires = recurrence.between(instant, instant + SECOND, 1) == [instant]
    assert found.fires == fires == (not found.reasons)
    assert found.following == recurrence.after(instant)
    assert LIMIT - steps.steps_left <= LIMIT or not found.previous_searched
    if found.previous is not None:
        assert found.previous < instant
        assert recurrence.after(found.previous, inclusive=True) == found.previous
        following = recurrence.after(found.previous)
        assert following is None or following >= instant
    elif found.previous_searched:
        first = recurrence.after(FIRST - timedelta(days=40_000))
        assert first is None or first >= instant
    for reason in found.reasons:
        check_reason(recurrence, instant, reason)
    return found.reasons[0].code if found.reasons else "fires"


def test_the_answer_agrees_with_the_evaluator() -> None:
    codes = Counter(check(*pair) for pair in pairs(19, 40, of_each_set=4))
    assert {"fires", "DTSTART", "BYDAY", "BYMONTH", "BYHOUR", "EXRULE", "INTERVAL"} <= codes.keys()


@pytest.mark.long
def test_the_answer_agrees_with_the_evaluator_for_ten_thousand_pairs() -> None:
    codes = Counter(check(*pair) for pair in pairs(1700, 10_000, of_each_set=10))
    assert {"UNTIL", "COUNT", "BYSETPOS", "EXDATE", "BYWEEKNO", "BYYEARDAY"} <= codes.keys()
