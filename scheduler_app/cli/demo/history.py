"""The past week of a schedule, made up: what its rule would have fired, and how each of it ended."""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from scheduler_app.cli.demo.contents import Sample
from scheduler_app.domain.event import Event, State, scheduled
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.triggers import TriggerContext, new_trigger
from scheduler_app.store.events.past_events import PastEvent

#: Of the newest occurrences alone: one every 15 seconds would be 40,000 in a week.
MOST = 1_200
#: When the receivers of everybody were away for two hours, counted back from now.
OUTAGE = (timedelta(days=3, hours=2), timedelta(days=3))
ATTEMPTS = 4
WORKER = "worker1@demo"


def past_of(schedule: Schedule, sample: Sample, now: datetime, days: int, seed: int) -> Iterator[PastEvent]:
    """The events that the schedule would have had within the last `days`, the oldest first."""
    begin = now - timedelta(days=days)
    chance = random.Random(f"{seed} {sample.name}")  # noqa: S311 (made-up history, no secret)
    context = TriggerContext(begin, schedule.trigger.timezone)
    recurrence = new_trigger(sample.when, context).recurrence(begin)
    for run_time in recurrence.between(begin, now - timedelta(minutes=2))[-MOST:]:
        event = scheduled(schedule.id, schedule.revision, run_time, schedule.action.isolation_key)
        yield _ended(event, sample, now - run_time, chance)


def _ended(event: Event, sample: Sample, age: timedelta, chance: random.Random) -> PastEvent:
    away = OUTAGE[0] > age > OUTAGE[1]
    failed = away or chance.random() < sample.failing
    dead = failed and chance.random() < (0.4 if away else sample.dying)
    failures = 0 if not failed else ATTEMPTS if dead and sample.status >= 429 else 1
    attempts, started_at = [], event.due_at
    for number in range(1, failures + 1):
        attempts.append(_attempt(number, started_at, event, sample, chance, away))
        started_at += timedelta(seconds=10 * 2**number * chance.uniform(0.5, 1))
    if not dead:
        attempts.append(_success(failures + 1, started_at, event, sample, chance))
    last = attempts[-1]
    ended_at = last["started_at"] + timedelta(milliseconds=last["duration_ms"])
    if dead:
        reason = "attempts are spent" if sample.status >= 429 else "a permanent failure"
        return PastEvent(event, State.ERROR, ended_at, f"Attempt {last['number']} failed: {reason}", attempts)
    return PastEvent(event, State.COMPLETED, ended_at, f"Attempt {last['number']} succeeded", attempts)


def _success(
    number: int, started_at: datetime, event: Event, sample: Sample, chance: random.Random
) -> dict[str, Any]:
    took = sample.slow_ms * chance.lognormvariate(0, 0.4)
    return _line(number, started_at, event, took, chance) | {"status_code": 200, "snippet": '{"ok": true}'}


def _attempt(
    number: int, started_at: datetime, event: Event, sample: Sample, chance: random.Random, away: bool
) -> dict[str, Any]:
    if away:
        wrong: dict[str, Any] = {"status_code": None, "error": "timed out: no answer within 10 s"}
        return _line(number, started_at, event, 10_000, chance) | wrong
    wrong = {"status_code": sample.status, "snippet": '{"error": "try again later"}'}
    return _line(number, started_at, event, sample.slow_ms / 2, chance) | wrong


def _line(
    number: int, started_at: datetime, event: Event, took: float, chance: random.Random
) -> dict[str, Any]:
    lag = chance.lognormvariate(1.6, 0.7)
    began = started_at + timedelta(milliseconds=lag)
    return {
        "number": number,
        "started_at": began.replace(microsecond=began.microsecond // 1000 * 1000),
        "duration_ms": round(took, 1),
        "lag_ms": round(lag, 1),
        "worker": WORKER,
    }
