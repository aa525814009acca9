"""The rules and triggers whose look-ups are measured."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from scheduler_app.domain.recurrence import AnyRecurrence, Recurrence
from scheduler_app.domain.triggers import TriggerContext, Value, new_trigger

NOW = datetime(2026, 11, 20, 12, 34, 56, tzinfo=UTC)
YESTERDAY = "20261119"


class Case(NamedTuple):
    """A rule under a name; `{start}` in the text is where the date of DTSTART goes."""

    name: str
    text: str
    oldest: str

    def recurrence(self, start: str) -> Recurrence:
        """The rule as it was parsed with that DTSTART."""
        return Recurrence.parse(self.text.format(start=start), created_at=NOW)


class TriggerCase(NamedTuple):
    """A trigger of any kind, given on a day."""

    name: str
    given: Mapping[str, Value]
    oldest: str
    timezone: str = "America/New_York"

    def recurrence(self, start: str) -> AnyRecurrence:
        """What the trigger became when it was given on that day."""
        at = datetime.fromisoformat(start).replace(tzinfo=UTC)
        return new_trigger(self.given, TriggerContext(at, self.timezone)).recurrence(at)


CASES = [
    Case("MINUTELY since 2016", "DTSTART:{start}T000000Z\nRRULE:FREQ=MINUTELY", "20160101"),
    Case("SECONDLY since 1970", "DTSTART:{start}T000000Z\nRRULE:FREQ=SECONDLY", "19700101"),
    Case(
        "HOURLY;INTERVAL=7 on weekdays, New York, since 1990",
        "DTSTART;TZID=America/New_York:{start}T000000\nRRULE:FREQ=HOURLY;INTERVAL=7;BYDAY=MO,TU,WE,TH,FR",
        "19900101",
    ),
    Case(
        "DAILY since 1950 with 300 EXDATEs",
        "DTSTART;TZID=Europe/Zurich:{start}T083000\nRRULE:FREQ=DAILY\nEXDATE;TZID=Europe/Zurich:"
        + ",".join(f"2026{month:02d}{day:02d}T083000" for month in range(1, 13) for day in range(1, 26)),
        "19500101",
    ),
    Case("YEARLY;BYDAY=20MO since 1900", "DTSTART:{start}T090000Z\nRRULE:FREQ=YEARLY;BYDAY=20MO", "19000101"),
    Case(
        "three RRULEs since 1980",
        "DTSTART:{start}T090000Z\nRRULE:FREQ=DAILY;BYHOUR=8\nRRULE:FREQ=WEEKLY;BYDAY=SA,SU"
        "\nRRULE:FREQ=MONTHLY;BYMONTHDAY=-1",
        "19800101",
    ),
    Case(
        "MINUTELY;BYHOUR=8,9;COUNT=100000 since 2025, checkpoint",
        "DTSTART:{start}T080000Z\nRRULE:FREQ=MINUTELY;BYHOUR=8,9;COUNT=100000",
        "20250101",
    ),
    Case(
        "DAILY since 1970, New York",
        "DTSTART;TZID=America/New_York:{start}T083000\nRRULE:FREQ=DAILY",
        "19700101",
    ),
    Case(
        "WEEKLY;BYDAY=MO,WE,FR since 1970, New York",
        "DTSTART;TZID=America/New_York:{start}T083000\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE,FR",
        "19700101",
    ),
]
ORDINARY = CASES[-2:]

#: Of each kind but `rrule`, which the cases above are.
TRIGGERS = [
    TriggerCase("cron */5 9-17 * * mon-fri", {"cron": "*/5 9-17 * * mon-fri"}, "19700101"),
    TriggerCase("cron 0 9 13 * fri, day or weekday", {"cron": "0 9 13 * fri"}, "19700101"),
    TriggerCase("cron 0 9 15W,LW * *", {"cron": "0 9 15W,LW * *"}, "19700101"),
    TriggerCase("cron 0 0 29 2 mon#1", {"cron": "0 0 29 2 1#1"}, "19700101"),
    TriggerCase("cron with seconds", {"cron": "*/7 * 9 * * 1-5", "cron_seconds": "first"}, "19700101"),
    TriggerCase("every_seconds 420", {"every_seconds": 420}, "19700101"),
    TriggerCase(
        "phrase, every other Tuesday", {"phrase": "every other tuesday at 9:34, starting monday"}, "19700101"
    ),
    TriggerCase(
        "phrase, last business day", {"phrase": "last business day of the month at 17:00"}, "19700101"
    ),
    TriggerCase(
        "phrase, between", {"phrase": "every 15 minutes between 9:00 and 17:00 on weekdays"}, "19700101"
    ),
    TriggerCase("run_at, local", {"run_at": datetime.fromisoformat("2030-01-05T12:00")}, "19700101"),
    TriggerCase("delay_seconds", {"delay_seconds": 3_000_000_000}, "19700101"),
    TriggerCase("on_demand", {"on_demand": True}, "19700101"),
]
