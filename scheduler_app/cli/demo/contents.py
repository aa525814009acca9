"""The schedules, destinations and messages of a demonstration, as the API takes them."""

from dataclasses import dataclass
from typing import Any

TAG = "demo"


@dataclass(frozen=True, slots=True)
class Sample:
    """A schedule, and how its receiver behaved in the past week."""

    name: str
    when: dict[str, Any]
    path: str = ""
    """Below the receiver's URL; a status that it answers with."""
    tags: tuple[str, ...] = ()
    destination: str | None = None
    failing: float = 0.01
    """The share of occurrences whose first attempt failed."""
    dying: float = 0.0
    """The share of those that failed for good."""
    status: int = 503
    slow_ms: float = 80.0
    timezone: str = "Europe/Berlin"


#: Limits and breakers; the last one's receiver always fails, so that its breaker opens while you look on.
DESTINATIONS: dict[str, dict[str, Any]] = {
    "crm": {"path": "", "rate_per_second": 20, "concurrency": 10},
    "warehouse": {"path": "", "concurrency": 4},
    "old-billing": {"path": "/503", "breaker": {"failures": 3, "open_seconds": 120}, "concurrency": 2},
}

SAMPLES: tuple[Sample, ...] = (
    Sample("Nightly invoice run", {"cron": "30 2 * * *"}, tags=("billing",), slow_ms=2_400),
    Sample("Dunning letters", {"phrase": "every weekday at 9:00"}, tags=("billing",), failing=0.1),
    Sample("Monthly statement", {"phrase": "on the last day of the month at 18:00"}, tags=("billing",)),
    Sample("Payment status", {"every_seconds": 900}, "/200", ("billing", "poll"), failing=0.12, dying=0.25),
    Sample("Card expiry reminders", {"cron": "15 8 * * 1-5"}, tags=("billing", "mail"), failing=0.05),
    Sample("CRM contacts sync", {"every_seconds": 1_800}, tags=("crm",), destination="crm", failing=0.04),
    Sample("CRM deals sync", {"every_seconds": 3_600}, tags=("crm",), destination="crm", failing=0.04),
    Sample("Lead scoring", {"cron": "5 * * * *"}, tags=("crm",), destination="crm", slow_ms=700),
    Sample("Legacy ledger export", {"every_seconds": 1_200}, tags=("billing",), destination="old-billing",
           failing=0.5, dying=0.6),
    Sample("Stock levels", {"every_seconds": 600}, tags=("shop",), destination="warehouse", slow_ms=310),
    Sample("Price feed", {"cron": "*/20 6-22 * * *"}, tags=("shop",), failing=0.03, status=429),
    Sample("Search index", {"every_seconds": 1_200}, tags=("shop",), slow_ms=1_100, failing=0.02),
    Sample("Abandoned carts", {"cron": "0 * * * *"}, tags=("shop", "mail"), failing=0.02),
    Sample("Review requests", {"phrase": "every day at 10:30"}, tags=("shop", "mail")),
    Sample("Old catalogue import", {"every_seconds": 7_200}, "/404", ("shop",), failing=1.0, dying=1.0,
           status=404),
    Sample("Weekly digest", {"phrase": "every monday at 7:00"}, tags=("mail",)),
    Sample("Newsletter", {"rrule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=TH;BYHOUR=11;BYMINUTE=0;BYSECOND=0"},
           tags=("mail",)),
    Sample("Bounce handling", {"every_seconds": 1_800}, tags=("mail",), failing=0.06),
    Sample("Database backup", {"cron": "0 1 * * *"}, tags=("ops",), slow_ms=6_200, timezone="UTC"),
    Sample("Backup check", {"cron": "0 4 * * *"}, tags=("ops",), failing=0.3, dying=0.5, timezone="UTC"),
    Sample("Certificate expiry", {"phrase": "every day at 6:00"}, tags=("ops",)),
    Sample("Uptime probe", {"every_seconds": 300}, tags=("ops", "poll"), failing=0.01, slow_ms=40),
    Sample("Log rotation", {"cron": "45 23 * * *"}, tags=("ops",), timezone="UTC"),
    Sample("Queue depth report", {"cron": "*/30 * * * *"}, tags=("ops",)),
    Sample("Tokyo close of trading", {"cron": "0 15 * * 1-5"}, tags=("finance",), timezone="Asia/Tokyo"),
    Sample("New York open of trading", {"cron": "30 9 * * 1-5"}, tags=("finance",),
           timezone="America/New_York"),
    Sample("Exchange rates", {"cron": "5 16 * * 1-5"}, tags=("finance",), failing=0.4, dying=0.3, status=500),
    Sample("Month-end accruals", {"rrule": "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=20;"
                                  "BYMINUTE=0;BYSECOND=0"}, tags=("finance",)),
    Sample("Heartbeat", {"every_seconds": 15}, tags=("live",), failing=0.0, slow_ms=12),
    Sample("Live dashboard refresh", {"every_seconds": 30}, tags=("live",), failing=0.01),
    Sample("Unsteady partner", {"every_seconds": 60}, "/503", ("live",), failing=0.7, dying=0.2),
    Sample("Refund on demand", {"on_demand": True}, tags=("billing",)),
)  # fmt: skip

MESSAGES = ("order.shipped", "order.paid", "trial.ending", "password.reset")
