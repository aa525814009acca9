"""What holds for every rule, over random rules, zones and instants.

An ordinary run covers some 450 rules and is the same each time; `make long` covers 8,000, and
`RECURRENCE_RULES=100000` makes a run of about so many, with fresh random choices.
"""

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from scheduler_app.domain.recurrence import InvalidRecurrence, Recurrence, recurrence
from scheduler_app.domain.recurrence.timeline import PARSE_LIMIT, StepBudget
from tests.unit.recurrence.rrule_walker import NAMES, day_passes, shows, walk

RULES = int(os.environ.get("RECURRENCE_RULES", "350"))
CREATED = datetime(2026, 1, 1, tzinfo=UTC)
FREQUENCIES = ["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"]
ELAPSED = FREQUENCIES[4:]
WALKED_DAYS = dict(zip(FREQUENCIES, (1100, 400, 200, 100, 8, 0.4, 0.01), strict=True))
ZONES = [
    "UTC",
    "America/New_York",
    "Europe/Zurich",
    "Europe/Dublin",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Asia/Kathmandu",
    "America/Santiago",
    "America/St_Johns",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "Asia/Gaza",
]
# Near clock changes, the lost day of Apia, and the edges of years.
NEAR = [
    datetime.fromisoformat(text)
    for text in (
        "2026-03-08T02:00",
        "2026-11-01T01:00",
        "2026-03-29T02:00",
        "2026-10-25T02:00",
        "2026-10-04T02:00",
        "2026-04-05T01:30",
        "2026-09-06T00:00",
        "2025-02-23T02:00",
        "2011-12-30T00:00",
        "2024-02-29T00:00",
        "2021-01-01T00:00",
        "2025-01-01T00:00",
    )
]


def share(part: float, rules: int = RULES) -> settings:
    """Settings for a part of all the rules."""
    return settings(
        max_examples=max(1, int(rules * part)),
        derandomize=rules <= 10_000,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def some(values: list[Any], most: int = 4) -> st.SearchStrategy[str]:
    chosen = st.lists(st.sampled_from(values), min_size=1, max_size=most, unique=True)
    return chosen.map(lambda items: ",".join(map(str, items)))


@st.composite
def rules(draw: st.DrawFn, frequencies: list[str] = FREQUENCIES, ends: bool = True) -> str:
    """A rule that RFC 5545 allows; it may still be one that can never fire."""
    freq = draw(st.sampled_from(frequencies))
    parts = {}
    wanted = draw(st.sets(st.integers(0, 10), max_size=4))
    if 0 in wanted:
        parts["INTERVAL"] = str(draw(st.sampled_from([2, 3, 4, 5, 7, 11, 14, 24, 25, 60, 90])))
    if 1 in wanted:
        parts["BYMONTH"] = draw(some(list(range(1, 13))))
    if 2 in wanted and freq == "YEARLY":
        parts["BYWEEKNO"] = draw(some([1, 2, 10, 20, 51, 52, 53, -1, -2, -52, -53]))
    if 3 in wanted and freq not in ("MONTHLY", "WEEKLY", "DAILY"):
        parts["BYYEARDAY"] = draw(some([1, 2, 59, 60, 61, 100, 300, 365, 366, -1, -2, -100, -306, -366]))
    if 4 in wanted and freq != "WEEKLY":
        parts["BYMONTHDAY"] = draw(some([number for number in range(-31, 32) if number], 8))
    if 5 in wanted:
        numbered = freq in ("MONTHLY", "YEARLY") and "BYWEEKNO" not in parts
        numbers = ["", 1, 2, 3, 5, -1, -2, -5, 20, 53] if numbered else [""]
        parts["BYDAY"] = draw(some([f"{number}{name}" for number in numbers for name in NAMES]))
    if 6 in wanted:
        parts["BYHOUR"] = draw(some(list(range(24))))
    if 7 in wanted:
        parts["BYMINUTE"] = draw(some([0, 10, 15, 20, 30, 45, 59]))
    if 8 in wanted:
        parts["BYSECOND"] = draw(some([0, 1, 20, 30, 59]))
    if 9 in wanted and any(name.startswith("BY") for name in parts):
        parts["BYSETPOS"] = draw(some([1, 2, 3, 5, -1, -2, -3]))
    if 10 in wanted:
        parts["WKST"] = draw(st.sampled_from(NAMES))
    if freq in ("MONTHLY", "YEARLY") and draw(st.integers(0, 3)) == 0:
        parts |= {"RSCALE": "GREGORIAN", "SKIP": draw(st.sampled_from(["OMIT", "BACKWARD", "FORWARD"]))}
    if ends and draw(st.integers(0, 4)) == 0:
        parts["COUNT"] = str(draw(st.integers(1, 40)))
    return ";".join([f"FREQ={freq}", *(f"{name}={value}" for name, value in parts.items())])


@st.composite
def starts(draw: st.DrawFn, days: float) -> datetime:
    """A wall clock a little before something interesting."""
    near = draw(st.sampled_from(NEAR))
    back = timedelta(seconds=draw(st.integers(0, int(days * 86_400 * 0.6))))
    start = near - back
    return start.replace(
        minute=draw(st.sampled_from([0, 15, 30, 45])), second=draw(st.sampled_from([0, 0, 7]))
    )


def parsed(rule: str, start: datetime, zone: str) -> Recurrence:
    """The recurrence; a rule that can never fire is not what is tested."""
    try:
        return Recurrence.parse(
            f"DTSTART:{start:%Y%m%dT%H%M%S}\nRRULE:{rule}", created_at=CREATED, timezone=zone
        )
    except InvalidRecurrence as error:
        assume("can never fire" not in error.message and "steps of the evaluator" not in error.message)
        raise


def freq_of(rule: str) -> str:
    return rule.removeprefix("FREQ=").partition(";")[0]


@share(0.2)
@given(st.data())
def test_what_is_computed_is_what_a_walk_from_dtstart_finds(data: st.DataObject) -> None:
    rule = data.draw(rules())
    span = WALKED_DAYS[freq_of(rule)]
    start = data.draw(starts(span))
    zone = data.draw(st.sampled_from(ZONES))
    gap = data.draw(st.sampled_from(["shift", "skip"]))
    overlap = data.draw(st.sampled_from(["first", "last"]))
    stop = start.replace(tzinfo=UTC) + timedelta(days=span)
    walked = walk(rule, start, zone, stop, gap=gap, overlap=overlap)
    try:
        found = Recurrence.parse(
            f"DTSTART:{start:%Y%m%dT%H%M%S}\nRRULE:{rule}",
            created_at=CREATED,
            timezone=zone,
            gap=gap,
            overlap=overlap,
        )
    except InvalidRecurrence:
        assert walked == []
        return
    early = start.replace(tzinfo=UTC) - timedelta(days=3)
    assert found.between(early, stop) == walked
    middle = early + (stop - early) * data.draw(st.floats(0, 1))
    assert found.between(middle, stop) == [instant for instant in walked if instant >= middle]
    following = found.after(middle)
    expected = next((instant for instant in walked if instant > middle), None)
    assert following == expected or (expected is None and following is not None and following >= stop)


@share(0.25)
@given(st.data())
def test_a_window_is_the_sum_of_its_halves_and_each_step_of_after(data: st.DataObject) -> None:
    rule = data.draw(rules(ends=False))
    zone = data.draw(st.sampled_from(ZONES))
    start = data.draw(starts(1)).replace(year=data.draw(st.integers(1900, 2020)), day=15)
    found = parsed(rule, start, zone)
    begin = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=data.draw(st.integers(0, 10**8)))
    everything = found.between(begin, datetime(2200, 1, 1, tzinfo=UTC), 12)
    assert everything == sorted(set(everything))
    instant = begin - timedelta(seconds=1)
    for expected in everything:
        following = found.after(instant)
        assert following == expected
        instant = expected
    if everything:
        end = everything[-1]
        cut = begin + (end - begin) * data.draw(st.floats(0, 1))
        assert found.between(begin, cut) + found.between(cut, end) == everything[:-1]
        assert found.between_and_next(begin, cut, 12) == (
            found.between(begin, cut),
            found.after(cut, inclusive=True),
        )
        assert found.between_and_next(begin, end, 3) == (
            everything[:-1][:3],
            everything[min(3, len(everything) - 1)],
        )


@share(0.2)
@given(st.data())
def test_a_dtstart_moved_back_by_whole_intervals_changes_nothing_that_comes_later(
    data: st.DataObject,
) -> None:
    rule = data.draw(rules(ends=False))
    assume("BYWEEKNO" not in rule or "BYDAY" in rule)  # another year has another weekday there
    start = data.draw(starts(1)).replace(day=15)
    interval = int(dict(part.split("=") for part in rule.split(";")).get("INTERVAL", "1"))
    freq = freq_of(rule)
    if freq in ("YEARLY", "MONTHLY"):
        months = (12 if freq == "YEARLY" else 1) * interval
        back = start.year * 12 + start.month - 1 - data.draw(st.integers(1, 3600 // months)) * months
        old = start.replace(year=back // 12, month=back % 12 + 1)
    else:
        units = {"WEEKLY": 604_800, "DAILY": 86_400, "HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}
        step = units[freq] * interval
        old = start - timedelta(seconds=data.draw(st.integers(1, 10**10 // step)) * step)
    begin = start.replace(tzinfo=UTC) + timedelta(seconds=data.draw(st.integers(0, 10**8)))
    end = datetime(2600, 1, 1, tzinfo=UTC)
    assert parsed(rule, old, "UTC").between(begin, end, 10) == parsed(rule, start, "UTC").between(
        begin, end, 10
    )


@share(0.15)
@given(st.data())
def test_count_is_the_prefix_and_a_checkpoint_changes_nothing(data: st.DataObject) -> None:
    rule = data.draw(rules(ends=False))
    start = data.draw(starts(2))
    zone = data.draw(st.sampled_from(ZONES))
    count = data.draw(st.integers(1, 60))
    endless = parsed(rule, start, zone)
    counted = parsed(f"{rule};COUNT={count}", start, zone)
    begin = start.replace(tzinfo=UTC) - timedelta(days=3)
    end = datetime(2600, 1, 1, tzinfo=UTC)
    prefix = endless.between(begin, end, count)
    assert counted.between(begin, end) == prefix
    if prefix:
        at = data.draw(st.sampled_from(prefix))
        resumed = Recurrence.parse(
            counted.text, created_at=CREATED, timezone=zone, checkpoint=counted.checkpoint(at)
        )
        assert resumed.between(at, end) == [instant for instant in prefix if instant >= at]


@share(0.15)
@given(st.data())
def test_every_result_satisfies_its_by_parts(data: st.DataObject) -> None:
    rule = data.draw(rules(ends=False))
    zone = data.draw(st.sampled_from(ZONES))
    start = data.draw(starts(1)).replace(year=data.draw(st.integers(1950, 2020)), day=15)
    found = parsed(rule, start, zone)
    parts = dict(piece.split("=") for piece in rule.split(";"))
    begin = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=data.draw(st.integers(0, 10**8)))
    for one in found.occurrences(begin, datetime(2200, 1, 1, tzinfo=UTC), 8):
        if one.dst == "gap_shifted":
            continue
        if freq_of(rule) in ELAPSED:
            assert shows(parts, one.local, start)
        else:
            assert day_passes(parts, one.local.date(), start.date())
            for name, value, default in (
                ("BYHOUR", one.local.hour, start.hour),
                ("BYMINUTE", one.local.minute, start.minute),
                ("BYSECOND", one.local.second, start.second),
            ):
                assert value in [int(text) for text in parts.get(name, str(default)).split(",")]


@share(0.1)
@given(st.data())
def test_text_order_exdate_and_the_canonical_form(data: st.DataObject) -> None:
    rule = data.draw(rules())
    zone = data.draw(st.sampled_from(ZONES))
    start = data.draw(starts(30))
    found = parsed(rule, start, zone)
    end = datetime(2500, 1, 1, tzinfo=UTC)
    first = found.between(found.dtstart - timedelta(days=3), end, 6)

    first_part, *others = rule.split(";")
    lists = []
    for name, values in (part.split("=") for part in reversed(others)):
        lists.append(name + "=" + ",".join(reversed(values.split(","))))
    assert parsed(";".join([*lists, first_part]), start, zone) == found
    assert Recurrence.parse(found.text, created_at=CREATED + timedelta(days=99)) == found

    if first:
        gone = data.draw(st.sampled_from(first))
        without = Recurrence.parse(f"{found.text}\nEXDATE:{gone:%Y%m%dT%H%M%SZ}", created_at=CREATED)
        left = without.between(found.dtstart - timedelta(days=3), end, len(first) - 1)
        assert left == [instant for instant in first if instant != gone]


TEXT = st.one_of(
    st.text(max_size=80),
    st.text(alphabet="FREQ=DAILYBMONTHUSC;,:0123456789-+\n TZ", max_size=80),
    st.lists(
        st.sampled_from(
            [
                "FREQ=",
                "DAILY",
                "SECONDLY",
                "YEARLY",
                ";",
                "INTERVAL=",
                "86399",
                "7",
                "COUNT=",
                "UNTIL=",
                "20260101T000000Z",
                "20260101",
                "BYDAY=",
                "MO",
                "-5",
                "BYSETPOS=",
                "BYMONTHDAY=",
                "30",
                "BYMONTH=",
                "2",
                ",",
                "\n",
                "DTSTART:",
                "DTSTART;TZID=America/New_York:",
                "19000101T023000",
                "99991231T235959Z",
                "00010101T000000",
                "RRULE:",
                "EXRULE:",
                "RDATE:",
                "EXDATE:",
                "BYHOUR=",
                "23",
            ]
        ),
        max_size=24,
    ).map("".join),
    rules().map(lambda rule: rule + "\nEXRULE:" + rule),
)


@share(0.25)
@given(TEXT)
def test_no_text_raises_anything_else_or_takes_more_than_its_steps(text: str) -> None:
    budgets: list[StepBudget] = []

    class Counted(StepBudget):
        def __init__(self, *, parsing: bool = False) -> None:
            super().__init__(parsing=parsing)
            budgets.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recurrence, "StepBudget", Counted)
        try:
            found = Recurrence.parse(text, created_at=CREATED)
            found.after(CREATED)
            found.occurrences(CREATED, datetime(2030, 1, 1, tzinfo=UTC), 3)
            assert found.description
        except InvalidRecurrence:
            pass
    assert all(budget.steps_left >= -1 for budget in budgets)
    assert not budgets or budgets[0].limit == PARSE_LIMIT


PROPERTIES: dict[str, tuple[float, Any, Any]] = {
    "as walked": (0.2, test_what_is_computed_is_what_a_walk_from_dtstart_finds, st.data()),
    "halves": (0.25, test_a_window_is_the_sum_of_its_halves_and_each_step_of_after, st.data()),
    "moved back": (
        0.2,
        test_a_dtstart_moved_back_by_whole_intervals_changes_nothing_that_comes_later,
        st.data(),
    ),
    "count": (0.15, test_count_is_the_prefix_and_a_checkpoint_changes_nothing, st.data()),
    "parts": (0.15, test_every_result_satisfies_its_by_parts, st.data()),
    "text": (0.1, test_text_order_exdate_and_the_canonical_form, st.data()),
    "any text": (0.25, test_no_text_raises_anything_else_or_takes_more_than_its_steps, TEXT),
}


@pytest.mark.long
@pytest.mark.parametrize("name", PROPERTIES)
def test_the_same_holds_for_thousands_of_rules(name: str) -> None:
    part, test, strategy = PROPERTIES[name]
    of_thousands: Any = share(part, 8000)
    over: Any = given(strategy)
    of_thousands(over(test.hypothesis.inner_test))()
