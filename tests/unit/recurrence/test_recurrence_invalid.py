"""What is refused, and which part the error names."""

from datetime import UTC, datetime
from typing import Any

import pytest

from scheduler_app.domain.recurrence import InvalidRecurrence, Recurrence

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
PARIS = "DTSTART;TZID=Europe/Paris:20260101T083000\nRRULE:"
RULES = [
    ("RRULE", ["", "   ", "\n\n", "FREQ=DAILY;BYDAY", "FREQ=DAILY;;INTERVAL=2", "RRULE:"]),
    ("RRULE", ["FREQ=DAILY;=2x;é", "RRULE FREQ=DAILY"]),
    ("FREQ", ["INTERVAL=2", "FREQ=FORTNIGHTLY", "FREQ=", "FREQ=DAILY;FREQ=DAILY", "FREQ=DAILY,WEEKLY"]),
    (
        "INTERVAL",
        [f"FREQ=DAILY;INTERVAL={v}" for v in ("0", "-1", "1.5", "x", "", "1000000001", "9" * 30, "+2")],
    ),
    ("INTERVAL", ["FREQ=DAILY;INTERVAL=2;INTERVAL=2"]),
    ("COUNT", [f"FREQ=DAILY;COUNT={v}" for v in ("0", "-1", "many", "100001", "1e3")]),
    (
        "UNTIL",
        [f"FREQ=DAILY;UNTIL={v}" for v in ("tomorrow", "20260230", "20260101T2500", "20260101T250000Z")],
    ),
    ("UNTIL", ["FREQ=DAILY;UNTIL=20261231T000000Z;COUNT=3", "FREQ=DAILY;UNTIL=20260101T235960Z"]),
    ("UNTIL", [f"{PARIS}FREQ=DAILY;UNTIL=20261231", f"{PARIS}FREQ=DAILY;UNTIL=20261231T083000"]),
    ("UNTIL", ["DTSTART:20260101T083000Z\nRRULE:FREQ=DAILY;UNTIL=20261231T083000"]),
    ("BYMONTH", [f"FREQ=YEARLY;BYMONTH={v}" for v in ("0", "13", "-1", "JAN", "1,,2", "", "1;BYMONTH=2")]),
    ("BYWEEKNO", [f"FREQ=YEARLY;BYWEEKNO={v}" for v in ("0", "54", "-54")]),
    ("BYWEEKNO", [f"FREQ={f};BYWEEKNO=20" for f in ("MONTHLY", "WEEKLY", "DAILY", "HOURLY", "SECONDLY")]),
    ("BYYEARDAY", [f"FREQ=YEARLY;BYYEARDAY={v}" for v in ("0", "367", "-367")]),
    ("BYYEARDAY", [f"FREQ={f};BYYEARDAY=100" for f in ("MONTHLY", "WEEKLY", "DAILY")]),
    ("BYMONTHDAY", [f"FREQ=MONTHLY;BYMONTHDAY={v}" for v in ("0", "32", "-32", "1-5", "9" * 50)]),
    ("BYMONTHDAY", ["FREQ=WEEKLY;BYMONTHDAY=1"]),
    (
        "BYDAY",
        [f"FREQ=MONTHLY;BYDAY={v}" for v in ("XX", "0MO", "54MO", "-54MO", "MO TU", "1", "MONDAY", "+MO")],
    ),
    ("BYDAY", [f"FREQ={f};BYDAY=2MO" for f in ("WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")]),
    ("BYDAY", ["FREQ=YEARLY;BYWEEKNO=20;BYDAY=1MO"]),
    ("BYHOUR", [f"FREQ=DAILY;BYHOUR={v}" for v in ("24", "-1", "noon")]),
    ("BYMINUTE", [f"FREQ=DAILY;BYMINUTE={v}" for v in ("60", "-1")]),
    ("BYSECOND", [f"FREQ=DAILY;BYSECOND={v}" for v in ("60", "61", "-1")]),
    ("BYSETPOS", [f"FREQ=MONTHLY;BYDAY=MO;BYSETPOS={v}" for v in ("0", "367", "-367")]),
    (
        "BYSETPOS",
        ["FREQ=MONTHLY;BYSETPOS=1", "FREQ=DAILY;BYHOUR=9;BYSETPOS=2", "FREQ=WEEKLY;BYDAY=MO;BYSETPOS=2"],
    ),
    ("BYSETPOS", ["FREQ=HOURLY;BYMINUTE=0,30;BYSETPOS=3", "FREQ=SECONDLY;BYSECOND=0;BYSETPOS=-2"]),
    ("WKST", ["FREQ=WEEKLY;WKST=XX", "FREQ=WEEKLY;WKST=1MO", "FREQ=WEEKLY;WKST=MO,TU"]),
    ("RSCALE", ["RSCALE=CHINESE;FREQ=YEARLY"]),
    ("SKIP", ["FREQ=MONTHLY;SKIP=FORWARD"]),
    ("BYEASTER", ["FREQ=YEARLY;BYEASTER=0"]),
    ("DTSTART", ["FREQ=DAILY;DTSTART=20260101T000000Z"]),
    ("BYMOON", ["FREQ=DAILY;BYMOON=1"]),
    ("X-FOO", ["FREQ=DAILY;X-FOO=1"]),
    ("RRULE", ["hello"]),
]
NEVER = [
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=MONTHLY;BYMONTH=4,6,9,11;BYMONTHDAY=31",
    "FREQ=YEARLY;BYYEARDAY=366;BYMONTH=1",
    "FREQ=YEARLY;BYWEEKNO=53;BYMONTH=6",
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=28;BYDAY=5MO",
    "FREQ=MONTHLY;BYDAY=6MO",
    "FREQ=YEARLY;BYMONTH=2;BYDAY=6SU",
    "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6",
    "FREQ=MONTHLY;INTERVAL=12;BYMONTH=3",
    "FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29",
    "FREQ=YEARLY;INTERVAL=100;BYMONTH=2;BYMONTHDAY=29",
    "FREQ=HOURLY;INTERVAL=24;BYHOUR=3",
    "FREQ=HOURLY;INTERVAL=168;BYDAY=MO",
    "FREQ=HOURLY;INTERVAL=2;BYHOUR=1,3,5,7,9,11,13,15,17,19,21,23",
    "FREQ=MINUTELY;INTERVAL=60;BYMINUTE=17",
    "FREQ=SECONDLY;INTERVAL=60;BYSECOND=1",
    "FREQ=SECONDLY;INTERVAL=604800;BYDAY=WE",
    "FREQ=DAILY;INTERVAL=7;BYDAY=SU",
    "FREQ=DAILY;INTERVAL=146097;BYMONTHDAY=31",
]
LINES = [
    ("DTSTART", "DTSTART:20260101T000000Z\nDTSTART:20260102T000000Z\nRRULE:FREQ=DAILY"),
    ("DTSTART", "DTSTART:20260101T000000Z,20260102T000000Z\nRRULE:FREQ=DAILY"),
    ("DTSTART", "DTSTART:20260229T000000Z\nRRULE:FREQ=DAILY"),
    ("DTSTART", "DTSTART:2026-01-01T00:00:00Z\nRRULE:FREQ=DAILY"),
    ("DTSTART", "DTSTART:20260101T240000Z\nRRULE:FREQ=DAILY"),
    ("DTSTART", "DTSTART:20260101T000060Z\nRRULE:FREQ=DAILY"),
    ("DTSTART", "DTSTART:00000101T000000Z\nRRULE:FREQ=DAILY"),
    ("DTSTART", "DTSTART;TZID=America/New_York:99991231T235959\nRRULE:FREQ=DAILY"),
    ("DTSTART", "DTSTART;TZID=Europe/Paris:20260101T000000Z\nRRULE:FREQ=DAILY"),
    ("DTSTART", "DTSTART;VALUE=DATE:20260101T000000Z\nRRULE:FREQ=DAILY"),
    ("DTSTART", "DTSTART;VALUE=DATE-TIME:20260101\nRRULE:FREQ=DAILY"),
    ("DTSTART", "DTSTART;VALUE=TEXT:20260101\nRRULE:FREQ=DAILY"),
    ("DTSTART", "DTSTART;TZID=UTC;TZID=UTC:20260101T000000\nRRULE:FREQ=DAILY"),
    ("DTSTART", "DTSTART;RANGE=ALL:20260101T000000\nRRULE:FREQ=DAILY"),
    ("DTSTART", "DTSTART 20260101T000000Z\nRRULE:FREQ=DAILY"),
    ("DTSTART", "DTSTART:\nRRULE:FREQ=DAILY"),
    ("TZID", "DTSTART;TZID=Foo/Bar:20260101T000000\nRRULE:FREQ=DAILY"),
    ("TZID", "DTSTART;TZID=../UTC:20260101T000000\nRRULE:FREQ=DAILY"),
    ("TZID", "DTSTART;TZID=:20260101T000000\nRRULE:FREQ=DAILY"),
    ("TZID", 'DTSTART;TZID="Mars/Olympus":20260101T000000\nRRULE:FREQ=DAILY'),
    ("TZID", "EXDATE;TZID=EST5EDT4:20260101T000000\nRRULE:FREQ=DAILY"),
    ("RDATE", "RDATE;VALUE=PERIOD:20260101T000000Z/PT1H\nRRULE:FREQ=DAILY"),
    ("RDATE", "RDATE:20260101T000000Z/PT1H\nRRULE:FREQ=DAILY"),
    ("RDATE", "RDATE:20260101T000000Z,\nRRULE:FREQ=DAILY"),
    ("EXDATE", "EXDATE:yesterday\nRRULE:FREQ=DAILY"),
    ("RRULE", "EXDATE:20260101T000000Z"),
    ("RRULE", "EXRULE:FREQ=DAILY"),
    ("RRULE", "RRULE;TZID=UTC:FREQ=DAILY"),
    ("BYMONTH", "FREQ=DAILY\nEXRULE:FREQ=DAILY;BYMONTH=13"),
    ("RRULE", "SUMMARY:lunch\nRRULE:FREQ=DAILY"),
    ("RRULE", "BEGIN:VEVENT\nRRULE:FREQ=DAILY\nEND:VEVENT"),
    ("BYHOUR", "DTSTART:20260101\nRRULE:FREQ=DAILY;BYHOUR=9"),
    ("FREQ", "DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=HOURLY"),
    ("EXRULE", "FREQ=DAILY\nEXRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"),
    ("RRULE", "x" * 65_537),
    ("RRULE", "FREQ=DAILY\n" + "EXDATE:20260101T000000Z\n" * 1_000),
    ("RRULE", "\n".join([f"RRULE:FREQ=DAILY;INTERVAL={n}" for n in range(1, 18)])),
    ("RDATE", "RDATE:" + ",".join(["20260101T000000Z"] * 2_001)),
]


def refusal(text: str, **choices: Any) -> InvalidRecurrence:
    with pytest.raises(InvalidRecurrence) as caught:
        Recurrence.parse(text, created_at=CREATED, **choices)
    whole = caught.value.part in ("RRULE", "timezone", "gap", "overlap")
    assert caught.value.message.startswith(f"{caught.value.part}: ") is not whole
    assert len(caught.value.message) < 6_000
    return caught.value


@pytest.mark.parametrize(("part", "text"), [(part, text) for part, texts in RULES for text in texts])
def test_a_forbidden_rule_is_refused_by_the_name_of_its_part(part: str, text: str) -> None:
    assert refusal(text).part == part


@pytest.mark.parametrize("rule", NEVER)
def test_a_rule_that_can_never_fire_is_refused_with_the_reason(rule: str) -> None:
    error = refusal(f"DTSTART:20260101T000000Z\nRRULE:{rule}")
    assert error.part == "RRULE"
    assert "can never fire" in error.message


@pytest.mark.parametrize(("part", "text"), LINES, ids=range(len(LINES)))
def test_a_wrong_line_is_refused_by_its_name(part: str, text: str) -> None:
    assert refusal(text).part == part


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (f"{PARIS}FREQ=DAILY;UNTIL=20260731T083000", "UNTIL=20260731T063000Z"),
        (f"{PARIS}FREQ=DAILY;UNTIL=20260131", "UNTIL=20260131T225959Z"),
        ("DTSTART:20260101T083000Z\nRRULE:FREQ=DAILY;UNTIL=20261231T083000", "UNTIL=20261231T083000Z"),
    ],
)
def test_an_until_that_is_not_utc_is_refused_with_the_right_value(text: str, right: str) -> None:
    assert refusal(text).message.endswith(right)


@pytest.mark.parametrize(
    "text",
    [
        "DTSTART;TZID=Australia/Lord_Howe:20260321T021507\nRRULE:FREQ=HOURLY;BYHOUR=9;INTERVAL=60;BYSECOND=30",
        "DTSTART;TZID=Europe/Dublin:19080715T073000\nRRULE:FREQ=MINUTELY;INTERVAL=4;BYMINUTE=0",
        "DTSTART;TZID=America/New_York:20260101T020000\nRRULE:FREQ=HOURLY;INTERVAL=168;BYDAY=TU",
    ],
)
def test_never_is_proven_across_offsets_that_shift_the_clock_within_a_period(text: str) -> None:
    assert "can never fire" in refusal(text).message


def test_a_wrong_choice_beside_the_text_is_refused_by_its_name() -> None:
    assert refusal("FREQ=DAILY", timezone="Europe/Atlantis").part == "timezone"
    assert refusal("FREQ=DAILY", gap="jump").part == "gap"
    assert refusal("FREQ=DAILY", overlap="both").part == "overlap"


def test_a_checkpoint_that_is_none_is_refused() -> None:
    for wrong in ({}, {"second": "x", "done": []}, {"second": 1, "done": [-1]}, {"second": True, "done": []}):
        with pytest.raises(InvalidRecurrence, match="checkpoint"):
            Recurrence.parse("FREQ=DAILY;COUNT=3", created_at=CREATED, checkpoint=wrong)


def test_naive_datetimes_are_refused_where_they_enter() -> None:
    naive = datetime(2026, 1, 1)  # noqa: DTZ001
    recurrence = Recurrence.parse("FREQ=DAILY;COUNT=3", created_at=CREATED)
    for call in (
        lambda: Recurrence.parse("FREQ=DAILY", created_at=naive),
        lambda: recurrence.after(naive),
        lambda: recurrence.between(naive, CREATED),
        lambda: recurrence.between(CREATED, naive),
        lambda: recurrence.occurrences(CREATED, naive),
        lambda: recurrence.checkpoint(naive),
    ):
        with pytest.raises(ValueError, match="aware"):
            call()
