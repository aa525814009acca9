"""What each trigger kind is tried with. A new kind needs a row in SAMPLES; the suite fails without one."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from scheduler_app.domain.triggers import TriggerContext, Value

#: When every sample is given: a Monday, not on a whole second, before both clock changes of the year.
AT = datetime(2026, 3, 2, 12, 0, 0, 250_000, tzinfo=UTC)


class Refusal(NamedTuple):
    """Fields that must be refused, the field that the error names, and what its message says."""

    given: Mapping[str, Value]
    field: str
    remedy: str


@dataclass(frozen=True)
class Samples:
    """Of one kind."""

    written: tuple[Mapping[str, Value], ...]
    """What must be understood in any zone."""
    refused: tuple[Refusal, ...]


SAMPLES = {
    "rrule": Samples(
        written=(
            {"rrule": "FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0"},
            {"rrule": "DTSTART:20260328T023000\nRRULE:FREQ=HOURLY;INTERVAL=5\nEXDATE:20260328T073000"},
            {"rrule": "RRULE:FREQ=MONTHLY;BYDAY=-1FR;COUNT=40"},
        ),
        refused=(
            Refusal({"rrule": "FREQ=DAYLY"}, "rrule", "DAILY"),
            Refusal({"rrule": "FREQ=DAILY;BYHOUR=25"}, "rrule", "23"),
        ),
    ),
    "cron": Samples(
        written=(
            {"cron": "30 2 * * *"},
            {"cron": "*/15 1-3 * * *"},
            {"cron": "@Weekly"},
            {"cron": "0 12 13 * fri"},
            {"cron": "0 9 15W,L * *"},
            {"cron": "0 0 9 * * 1-5", "cron_seconds": "first"},
        ),
        refused=(
            Refusal({"cron": "0 9 * * fri-sun"}, "cron", "fri,sat,sun"),
            Refusal({"cron": "0 0 30 2 *"}, "cron", "can never fire"),
            Refusal({"cron": "@reboot"}, "cron", "run_at"),
            Refusal({"cron": "0 0 9 * * 1-5"}, "cron", "give cron_seconds"),
            Refusal({"cron": "0 9 * * *", "cron_seconds": "first"}, "cron_seconds", "leave it out"),
            Refusal({"cron": "0 0 9 * * 1-5", "cron_seconds": "middle"}, "cron_seconds", "first or last"),
        ),
    ),
    "every_seconds": Samples(
        written=(
            {"every_seconds": 1},
            {"every_seconds": 5_400},
            {"every_seconds": 86_400, "start_at": datetime(2026, 3, 28, 2, 30)},  # noqa: DTZ001 (local)
            {"every_seconds": 604_800, "start_at": datetime(2026, 1, 5, 9, tzinfo=UTC)},
        ),
        refused=(
            Refusal({"every_seconds": 0}, "every_seconds", "at least 1"),
            Refusal({"every_seconds": 2_000_000_000}, "every_seconds", "at most"),
            Refusal(
                {"every_seconds": 5, "start_at": datetime(2026, 5, 1, 0, 0, 0, 1_000, tzinfo=UTC)},
                "start_at",
                "whole seconds",
            ),
        ),
    ),
    "phrase": Samples(
        written=(
            {"phrase": "every other Tuesday at 9:34"},
            {"phrase": "every day at 2:30"},
            {"phrase": "every 90 minutes between 9 and 17 on weekdays"},
            {"phrase": "weekdays at 8:30 until 1 March 2032"},
            {"phrase": "in 10 minutes"},
            {"phrase": "every day at 9:00, 10 times"},
            {"phrase": "every 15 minutes"},
            {"phrase": "tomorrow at noon"},
        ),
        refused=(
            Refusal({"phrase": "every blue moon"}, "phrase", "not understood: every blue moon"),
            Refusal({"phrase": "every second friday at 16:00"}, "phrase", "of the month"),
            Refusal({"phrase": "yesterday at noon"}, "phrase", "not understood"),
            Refusal({"phrase": "every day until 1 March 2020"}, "phrase", "dates"),
        ),
    ),
    "run_at": Samples(
        written=(
            {"run_at": datetime(2031, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)},
            {"run_at": datetime(2031, 3, 30, 2, 30)},  # noqa: DTZ001 (local)
        ),
        refused=(
            Refusal({"run_at": datetime(2026, 3, 2, 12, tzinfo=UTC)}, "run_at", "later"),
            Refusal({"run_at": datetime(2026, 3, 1)}, "run_at", "later"),  # noqa: DTZ001 (local)
        ),
    ),
    "delay_seconds": Samples(
        written=({"delay_seconds": 90}, {"delay_seconds": 7 * 86_400}),
        refused=(
            Refusal({"delay_seconds": 0}, "delay_seconds", "at least 1"),
            Refusal({"delay_seconds": -5}, "delay_seconds", "at least 1"),
        ),
    ),
    "on_demand": Samples(
        written=({"on_demand": True},),
        refused=(Refusal({"on_demand": False}, "on_demand", "leave it out"),),
    ),
}


def context(timezone: str = "UTC", at: datetime = AT, *, active: bool = True) -> TriggerContext:
    """What the samples are read in."""
    return TriggerContext(at, timezone, active=active)
