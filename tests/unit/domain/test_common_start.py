"""Which rules fire at the same instants whenever they began."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from scheduler_app.domain.forecast import with_common_start
from scheduler_app.domain.recurrence import Recurrence
from tests.unit.recurrence.random_sets import ZONES

DAY = timedelta(days=1)
DRAWS = 40
STARTS = ("20260930T235959", "20261007T063000", "20261015T120731")


def test_cron_lines_of_different_days_are_alike() -> None:
    rule = "RRULE:FREQ=WEEKLY;BYDAY=MO,FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0"
    for head, kept in (
        ("DTSTART:20261126T210317Z", "DTSTART:19700101T000000Z"),
        ("DTSTART;TZID=Europe/Zurich:20261126T220317", "DTSTART;TZID=Europe/Zurich:19700101T000000"),
    ):
        assert with_common_start(f"{head}\n{rule}") == f"{kept}\n{rule}"


@pytest.mark.parametrize(
    "rule",
    [
        "RRULE:FREQ=DAILY",
        "RRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=0",
        "RRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0;COUNT=3",
        "RRULE:FREQ=DAILY;INTERVAL=2;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
        "RRULE:FREQ=WEEKLY;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
        "RRULE:FREQ=MONTHLY;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
        "RRULE:FREQ=MONTHLY;BYDAY=MO;BYHOUR=9;BYMINUTE=0;BYSECOND=0;BYSETPOS=1",
        "RRULE:FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=1;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
        "RRULE:FREQ=SECONDLY;BYSECOND=0",
        "RRULE:FREQ=MINUTELY;BYSECOND=0\nRDATE:20270101T000000Z",
        "RRULE:FREQ=MINUTELY;BYSECOND=0\nRRULE:FREQ=DAILY",
    ],
)
def test_what_counts_from_its_start_keeps_it(rule: str) -> None:
    text = f"DTSTART:20261126T210317Z\n{rule}"
    assert with_common_start(text) == text


def _rule(random: Random) -> str:
    frequency = random.choice(["MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY"])
    parts = [f"FREQ={frequency}", f"BYSECOND={random.choice(['0', '5,50'])}"]
    if frequency != "MINUTELY":
        parts.append(f"BYMINUTE={random.choice(['0', '30', '7,22,59'])}")
    if frequency not in ("MINUTELY", "HOURLY"):
        parts.append(f"BYHOUR={random.choice(['2', '0,1,2,3', '9,17'])}")
    if frequency == "WEEKLY" or random.random() < 0.3:
        parts.append(f"BYDAY={random.choice(['MO', 'SU', 'MO,TU,WE,TH,FR'])}")
    if frequency == "MONTHLY" or (frequency != "WEEKLY" and random.random() < 0.2):
        parts.append(f"BYMONTHDAY={random.choice(['1', '-1', '13,14,15,25'])}")
    if random.random() < 0.2:
        parts.append("BYMONTH=10,11")
    if random.random() < 0.2:
        parts.append("UNTIL=20261105T120000Z")
    return "RRULE:" + ";".join(parts)


def test_texts_with_a_common_start_have_the_same_occurrences() -> None:
    """Over clock changes of an hour and of half an hour, and where times are left out or come first."""
    random, shared = Random(36), 0
    for _ in range(DRAWS):
        zone, gap, overlap = random.choice(ZONES), *random.choice([("shift", "first"), ("skip", "last")])
        rules = "\n".join(_rule(random) for _ in range(random.choice([1, 1, 2])))
        texts = [f"DTSTART;TZID={zone}:{start}\n{rules}" for start in STARTS]
        common = {with_common_start(text) for text in texts}
        shared += len(common) == 1
        if len(common) > 1:
            continue
        created = datetime(2026, 1, 1, tzinfo=UTC)
        read = [
            Recurrence.parse(text, created_at=created, gap=gap, overlap=overlap, stored=True)
            for text in (*texts, *common)
        ]
        since = datetime(2026, 10, 17, tzinfo=UTC)
        first, *others = ([*each.between(since, since + 30 * DAY, limit=2_000)] for each in read)
        assert all(each == first for each in others), (zone, rules)
    assert shared > DRAWS / 2
