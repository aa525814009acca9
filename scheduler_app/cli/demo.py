"""What `scheduler demo` fills a deployment with: schedules that run, and a week of history made up for them.
Everything is made by the API, but the past, which no API can make. The same seed makes the same week.
"""

import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click
import requests

from scheduler_app.cli.addresses import api_url
from scheduler_app.cli.run_file import FILE_NAME
from scheduler_app.clock import clock, monotonic
from scheduler_app.config import Settings, load_settings
from scheduler_app.domain.event import Event, scheduled
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.states import State
from scheduler_app.domain.triggers import TriggerContext, new_trigger
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import PastEvent, PastEvents
from scheduler_app.store.schedules.last_runs import RunResult

TAG = "demo"


@dataclass(frozen=True, slots=True)
class Example:
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

SAMPLES: tuple[Example, ...] = (
    Example("Nightly invoice run", {"cron": "30 2 * * *"}, tags=("billing",), slow_ms=2_400),
    Example("Dunning letters", {"phrase": "every weekday at 9:00"}, tags=("billing",), failing=0.1),
    Example("Monthly statement", {"phrase": "on the last day of the month at 18:00"}, tags=("billing",)),
    Example("Payment status", {"every_seconds": 900}, "/200", ("billing", "poll"), failing=0.12, dying=0.25),
    Example("Card expiry reminders", {"cron": "15 8 * * 1-5"}, tags=("billing", "mail"), failing=0.05),
    Example("CRM contacts sync", {"every_seconds": 1_800}, tags=("crm",), destination="crm", failing=0.04),
    Example("CRM deals sync", {"every_seconds": 3_600}, tags=("crm",), destination="crm", failing=0.04),
    Example("Lead scoring", {"cron": "5 * * * *"}, tags=("crm",), destination="crm", slow_ms=700),
    Example("Legacy ledger export", {"every_seconds": 1_200}, tags=("billing",), destination="old-billing",
           failing=0.5, dying=0.6),
    Example("Stock levels", {"every_seconds": 600}, tags=("shop",), destination="warehouse", slow_ms=310),
    Example("Price feed", {"cron": "*/20 6-22 * * *"}, tags=("shop",), failing=0.03, status=429),
    Example("Search index", {"every_seconds": 1_200}, tags=("shop",), slow_ms=1_100, failing=0.02),
    Example("Abandoned carts", {"cron": "0 * * * *"}, tags=("shop", "mail"), failing=0.02),
    Example("Review requests", {"phrase": "every day at 10:30"}, tags=("shop", "mail")),
    Example("Old catalogue import", {"every_seconds": 7_200}, "/404", ("shop",), failing=1.0, dying=1.0,
           status=404),
    Example("Weekly digest", {"phrase": "every monday at 7:00"}, tags=("mail",)),
    Example("Newsletter", {"rrule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=TH;BYHOUR=11;BYMINUTE=0;BYSECOND=0"},
           tags=("mail",)),
    Example("Bounce handling", {"every_seconds": 1_800}, tags=("mail",), failing=0.06),
    Example("Database backup", {"cron": "0 1 * * *"}, tags=("ops",), slow_ms=6_200, timezone="UTC"),
    Example("Backup check", {"cron": "0 4 * * *"}, tags=("ops",), failing=0.3, dying=0.5, timezone="UTC"),
    Example("Certificate expiry", {"phrase": "every day at 6:00"}, tags=("ops",)),
    Example("Uptime probe", {"every_seconds": 300}, tags=("ops", "poll"), failing=0.01, slow_ms=40),
    Example("Log rotation", {"cron": "45 23 * * *"}, tags=("ops",), timezone="UTC"),
    Example("Queue depth report", {"cron": "*/30 * * * *"}, tags=("ops",)),
    Example("Tokyo close of trading", {"cron": "0 15 * * 1-5"}, tags=("finance",), timezone="Asia/Tokyo"),
    Example("New York open of trading", {"cron": "30 9 * * 1-5"}, tags=("finance",),
           timezone="America/New_York"),
    Example("Exchange rates", {"cron": "5 16 * * 1-5"}, tags=("finance",), failing=0.4, dying=0.3,
           status=500),
    Example("Month-end accruals", {"rrule": "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=20;"
                                  "BYMINUTE=0;BYSECOND=0"}, tags=("finance",)),
    Example("Heartbeat", {"every_seconds": 15}, tags=("live",), failing=0.0, slow_ms=12),
    Example("Live dashboard refresh", {"every_seconds": 30}, tags=("live",), failing=0.01),
    Example("Unsteady partner", {"every_seconds": 60}, "/503", ("live",), failing=0.7, dying=0.2),
    Example("Refund on demand", {"on_demand": True}, tags=("billing",)),
)  # fmt: skip

MESSAGES = ("order.shipped", "order.paid", "trial.ending", "password.reset")


#: Of the newest occurrences alone: one every 15 seconds would be 40,000 in a week.
MAX_PAST_EVENTS = 1_200
#: When the receivers of everybody were away for two hours, counted back from now.
OUTAGE = (timedelta(days=3, hours=2), timedelta(days=3))
ATTEMPTS = 4
WORKER = "worker1@demo"


def past_events_of(
    schedule: Schedule, sample: Example, now: datetime, days: int, seed: int
) -> Iterator[PastEvent]:
    """The events that the schedule would have had within the last `days`, the oldest first."""
    begin = now - timedelta(days=days)
    chance = random.Random(f"{seed} {sample.name}")  # noqa: S311 (made-up history, no secret)
    context = TriggerContext(begin, schedule.trigger.timezone)
    recurrence = new_trigger(sample.when, context).recurrence(begin)
    for run_time in recurrence.between(begin, now - timedelta(minutes=2))[-MAX_PAST_EVENTS:]:
        event = scheduled(schedule.id, schedule.revision, run_time, schedule.action.isolation_key)
        yield _past_event(event, sample, now - run_time, chance)


def _past_event(event: Event, sample: Example, age: timedelta, chance: random.Random) -> PastEvent:
    away = OUTAGE[0] > age > OUTAGE[1]
    failed = away or chance.random() < sample.failing
    dead = failed and chance.random() < (0.4 if away else sample.dying)
    failures = 0 if not failed else ATTEMPTS if dead and sample.status >= 429 else 1
    failure: dict[str, Any] = {"status_code": sample.status, "snippet": '{"error": "try again later"}'}
    if away:
        failure = {"status_code": None, "error": "timed out: no answer within 10 s"}
    attempts, started_at = [], event.due_at
    for number in range(1, failures + 1):
        took = 10_000 if away else sample.slow_ms / 2
        attempts.append(_attempt(number, started_at, took, chance) | failure)
        started_at += timedelta(seconds=10 * 2**number * chance.uniform(0.5, 1))
    if not dead:
        took = sample.slow_ms * chance.lognormvariate(0, 0.4)
        success = {"status_code": 200, "snippet": '{"ok": true}'}
        attempts.append(_attempt(failures + 1, started_at, took, chance) | success)
    last = attempts[-1]
    ended_at = last["started_at"] + timedelta(milliseconds=last["duration_ms"])
    if dead:
        reason = "attempts are spent" if sample.status >= 429 else "a permanent failure"
        return PastEvent(event, State.ERROR, ended_at, f"Attempt {last['number']} failed: {reason}", attempts)
    return PastEvent(event, State.COMPLETED, ended_at, f"Attempt {last['number']} succeeded", attempts)


def _attempt(number: int, started_at: datetime, took: float, chance: random.Random) -> dict[str, Any]:
    lag = chance.lognormvariate(1.6, 0.7)
    began = started_at + timedelta(milliseconds=lag)
    return {
        "number": number,
        "started_at": began.replace(microsecond=began.microsecond // 1000 * 1000),
        "duration_ms": round(took, 1),
        "lag_ms": round(lag, 1),
        "worker": WORKER,
    }


TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Api:
    """The API of a deployment, and what its schedules of a demonstration call."""

    url: str
    session: requests.Session

    @property
    def receiver(self) -> str:
        """The built-in receiver."""
        return f"{self.url}/echo"

    def send(self, method: str, path: str, body: Any) -> Any:
        """The answer's JSON. Raises ClickException with the API's own words where it refuses."""
        answer = self.session.request(method, f"{self.url}/api/v1{path}", json=body, timeout=TIMEOUT_SECONDS)
        if not answer.ok:
            raise click.ClickException(f"{method} {path} was refused: {answer.text[:300]}")
        return answer.json()


def fill(api: Api, store: Store, *, days: int, seed: int, say: Callable[[str], None]) -> None:
    """Makes everything. Raises ClickException where there are schedules already, or no receiver."""
    found = api.session.get(f"{api.url}/api/v1/schedules", params={"limit": 1}, timeout=TIMEOUT_SECONDS)
    if found.status_code != requests.codes.ok:
        raise click.ClickException(f"the API at {api.url} refuses to list schedules: {found.text[:300]}")
    if found.json()["schedules"]:
        raise click.ClickException(
            "there are schedules already: a demonstration is made in an empty deployment alone"
        )
    if api.session.get(api.receiver, timeout=TIMEOUT_SECONDS).status_code != requests.codes.ok:
        raise click.ClickException(
            f"{api.receiver} does not answer: set CALLBACK_ALLOWED_NETWORKS=127.0.0.0/8, as `scheduler up`"
            " does"
        )
    for name, fields in DESTINATIONS.items():
        given = {key: value for key, value in fields.items() if key != "path"}
        api.send("PUT", f"/destinations/{name}", given | {"url": api.receiver + fields["path"]})
    schedules = [_schedule_fields(each, api) for each in SAMPLES]
    made = api.send("POST", "/schedules/bulk", {"schedules": schedules})
    ids = [result["id"] for result in made["results"]]
    say(f"Made {len(DESTINATIONS)} destinations and {len(ids)} schedules.")
    count = _write_past(store, dict(zip(ids, SAMPLES, strict=True)), days, seed)
    say(f"Made up {count} events of the last {days} days.")
    messages = [
        {"event_name": MESSAGES[each % len(MESSAGES)], "callback_url": api.receiver,
         "payload": {"number": each}, "delay_seconds": each * 20}
        for each in range(60)
    ]  # fmt: skip
    api.send("POST", "/messages/bulk", {"messages": messages})
    say(f"Made {len(messages)} messages for the next {len(messages) * 20 // 60} minutes.")


def _schedule_fields(sample: Example, api: Api) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": sample.name, "tags": [TAG, *sample.tags], **sample.when}
    if not {"on_demand", "every_seconds"} & sample.when.keys():
        fields["timezone"] = sample.timezone
    if sample.destination:
        return fields | {"destination": sample.destination}
    return fields | {"callback_url": api.receiver + sample.path, "max_retries": 3}


def _write_past(store: Store, samples: dict[str, Example], days: int, seed: int) -> int:
    store.synchronize(clock)
    now, count, past_events = clock.now(), 0, PastEvents(store.mongo)
    for schedule_id, sample in samples.items():
        schedule = store.schedules.get(schedule_id)
        if isinstance(schedule, Schedule) and schedule.trigger.fires_by_itself:
            past = list(past_events_of(schedule, sample, now, days, seed))
            past_events.insert(past)
            if past:
                event, last = past[-1].event, past[-1]
                ran = RunResult(schedule.id, event.run_time, State(last.state), event.id, last.ended_at)
                past_events.note_last(ran)
            count += len(past)
    return count


_PAUSE_SECONDS = 0.5


def running_settings(config: str | None, data_dir: Path, wait: float) -> Settings:
    """The settings of the deployment, as soon as its API is ready, or after `wait` seconds in any case.
    Raises InvalidSetting."""
    end, pause, run_file = monotonic() + wait, threading.Event(), data_dir / FILE_NAME
    while True:
        found = config or (str(run_file) if run_file.exists() else None)
        settings = load_settings(found)
        if (found and _is_ready(settings)) or monotonic() >= end:
            return settings
        pause.wait(_PAUSE_SECONDS)


def _is_ready(settings: Settings) -> bool:
    try:
        return requests.get(f"{api_url(settings)}/readyz", timeout=2).ok
    except requests.RequestException:
        return False
