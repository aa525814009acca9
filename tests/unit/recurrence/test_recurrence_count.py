"""COUNT: the n-prefix, checkpoints, and what a look-up costs."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.recurrence.rules.calendar_rule import CalendarRule
from scheduler_app.domain.recurrence.rules.elapsed_rule import ElapsedRule

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
START = "DTSTART;TZID=Europe/Zurich:20200101T023000\nRRULE:"
RULES = [
    "FREQ=DAILY;COUNT=3000",
    "FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,30;COUNT=9000",
    "FREQ=WEEKLY;BYDAY=SU,MO;COUNT=600",
    "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1,1;COUNT=150",
    "FREQ=YEARLY;BYMONTH=1,2,3,4,9;BYMONTHDAY=29,30,31;COUNT=200",
    "FREQ=HOURLY;INTERVAL=5;COUNT=12000",
    "FREQ=HOURLY;INTERVAL=25;BYMINUTE=59;COUNT=900",
    "FREQ=MINUTELY;INTERVAL=20;BYHOUR=2,9;BYDAY=SU;COUNT=2000",
    "FREQ=DAILY;BYHOUR=2;BYMINUTE=0,15,30;BYSETPOS=1,-1;COUNT=4000",
    "FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,30;BYSETPOS=2,3;COUNT=4000",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,SU;BYHOUR=2,3;BYSETPOS=-1,2;COUNT=400",
    "FREQ=MONTHLY;INTERVAL=5;BYDAY=-1SU,1SU;BYHOUR=2,3;BYMINUTE=30;BYSETPOS=1,-1;COUNT=60",
    "FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU;BYHOUR=1,2,3;BYSETPOS=2,3,-3;COUNT=30",
    "FREQ=YEARLY;BYWEEKNO=1,13,53;BYDAY=MO,SU;BYHOUR=2,3;BYSETPOS=1,-2,4;COUNT=60",
]


@pytest.mark.parametrize("gap", ["shift", "skip"])
@pytest.mark.parametrize("rule", RULES)
def test_counted_ahead_and_counted_one_by_one_agree(rule: str, gap: str) -> None:
    counted = Recurrence.parse(START + rule, created_at=CREATED, gap=gap)
    count = int(rule.rpartition("=")[2])
    endless = Recurrence.parse(START + rule.rpartition(";")[0], created_at=CREATED, gap=gap)
    expected = endless.between(endless.dtstart, CREATED + timedelta(days=9999), count)
    for share in (0, 0.2, 0.5, 0.9, 0.999):
        at = expected[int(len(expected) * share)]
        fresh = Recurrence.parse(counted.text, created_at=CREATED, gap=gap)
        assert fresh.between(at, CREATED + timedelta(days=9999)) == expected[int(len(expected) * share) :]
    assert counted.after(expected[-1]) is None
    assert counted.after(expected[-2]) == expected[-1]


@pytest.mark.parametrize("rule", RULES)
def test_a_checkpoint_changes_no_answer(rule: str) -> None:
    recurrence = Recurrence.parse(START + rule, created_at=CREATED)
    end = CREATED + timedelta(days=9999)
    everything = recurrence.between(recurrence.dtstart, end)
    middle = everything[len(everything) // 2]
    stored = json.loads(json.dumps(recurrence.checkpoint(middle)))
    resumed = Recurrence.parse(recurrence.text, created_at=CREATED, checkpoint=stored)
    assert resumed.between(middle, end) == everything[len(everything) // 2 :]
    assert (
        resumed.between(recurrence.dtstart, end) == everything
    )  # an instant before the checkpoint is right too


def test_a_look_up_from_a_checkpoint_costs_the_distance_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = "FREQ=MINUTELY;BYHOUR=8,9;COUNT=100000"
    recurrence = Recurrence.parse(f"DTSTART:20000101T080000Z\nRRULE:{rule}", created_at=CREATED)
    instant = datetime(2001, 1, 1, 8, 30, tzinfo=UTC)
    stored = recurrence.checkpoint(instant)
    walked: list[int] = []
    original = ElapsedRule.instants

    def listening(self: ElapsedRule, *arguments: object) -> object:
        for second in original(self, *arguments):  # type: ignore[arg-type]
            walked.append(second)
            yield second

    resumed = Recurrence.parse(recurrence.text, created_at=CREATED, checkpoint=stored)
    monkeypatch.setattr(ElapsedRule, "instants", listening)
    assert resumed.after(instant + timedelta(minutes=3)) == instant + timedelta(minutes=4)
    assert len(walked) < 20


def test_plain_rules_are_counted_without_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    daily = Recurrence.parse("DTSTART:19700101T080000Z\nRRULE:FREQ=DAILY;COUNT=100000", created_at=CREATED)
    walked: list[int] = []
    original = CalendarRule.instants

    def listening(self: CalendarRule, *arguments: object) -> object:
        for second in original(self, *arguments):  # type: ignore[arg-type]
            walked.append(second)
            yield second

    monkeypatch.setattr(CalendarRule, "instants", listening)
    assert daily.after(datetime(2200, 1, 1, 9, tzinfo=UTC)) == datetime(2200, 1, 2, 8, tzinfo=UTC)
    assert len(walked) < 20


def test_a_checkpoint_of_another_rule_is_not_used() -> None:
    other = Recurrence.parse("DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY;COUNT=5", created_at=CREATED)
    stored = other.checkpoint(CREATED + timedelta(days=4))
    text = "DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY;COUNT=6"
    recurrence = Recurrence.parse(text, created_at=CREATED, checkpoint=stored)
    assert len(recurrence.between(CREATED, CREATED + timedelta(days=99))) == 6


def test_there_is_no_checkpoint_without_count() -> None:
    assert Recurrence.parse("FREQ=DAILY", created_at=CREATED).checkpoint(CREATED) is None


def test_exdate_takes_away_and_is_counted_all_the_same() -> None:
    text = "DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY;COUNT=4\nEXDATE:20260102T090000Z"
    found = Recurrence.parse(text, created_at=CREATED).between(CREATED, CREATED + timedelta(days=99))
    assert [instant.day for instant in found] == [1, 3, 4]


def test_several_counting_rules_have_one_checkpoint() -> None:
    rules = "RRULE:FREQ=DAILY;COUNT=4\nRRULE:FREQ=WEEKLY;COUNT=3\nEXRULE:FREQ=DAILY;COUNT=1"
    text = "DTSTART:20260101T090000Z\n" + rules
    recurrence = Recurrence.parse(text, created_at=CREATED)
    stored = recurrence.checkpoint(CREATED + timedelta(days=3))
    assert stored is not None
    resumed = Recurrence.parse(text, created_at=CREATED, checkpoint=stored)
    found = resumed.between(CREATED, CREATED + timedelta(days=99))
    assert [instant.day for instant in found] == [2, 3, 4, 8, 15]
