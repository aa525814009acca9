"""Outages × rules × policies: what is sent, what expires and what is recorded, to the occurrence."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.event import due
from scheduler_app.domain.lateness import CatchUp
from scheduler_app.domain.missed import MAX_SINGLES, OCCURRENCES_A_STEP, MissedStep
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.missed import MissedOccurrences, MoveCursor
from scheduler_app.usecases.duties.expansion import OCCURRENCES_A_PAGE, Expansion
from scheduler_app.usecases.duties.owed_expansion import OwedExpansion
from scheduler_app.usecases.questions.explanation import explain_schedule
from scheduler_app.worker import Pipeline
from tests.acceptance.journal import Journal
from tests.builders import event, message, schedule
from tests.executors import executors
from tests.integration.usecases.test_delivery import journal
from tests.processes import PATIENCE_SECONDS

__all__ = ["journal"]

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
BEATS = 3
TIMEFRAME = 60.0
OUTAGES = {"10 s": 10 * SECOND, "10 min": 10 * MINUTE, "3 days": 3 * DAY}
#: So many pages at most move past what is missed here, however slow this machine is: each of them past as
#: many occurrences at least as become events one by one.
MOST_PAGES = 3 * DAY // (MAX_SINGLES * SECOND) + 100
#: When each rule fires first, counted from the beginning of the outage, and how often.
RULES: dict[str, tuple[timedelta, timedelta]] = {
    "each second": (SECOND, SECOND),
    "minutely": (3 * SECOND, MINUTE),
    "daily": (5 * SECOND, DAY),
    "daily, lately": (DAY - 10 * MINUTE, DAY),
    "once": (2 * SECOND, timedelta(0)),
}
POLICIES: dict[str, dict[str, Any]] = {
    "all": {},
    "latest": {"catch_up": CatchUp.LATEST},
    "none": {"catch_up": CatchUp.NONE},
    "expire_after": {"expire_after_seconds": 120.0},
    "latest and expire_after": {"catch_up": CatchUp.LATEST, "expire_after_seconds": 400.0},
}


def occurrences(rule: str, began: datetime, until: datetime) -> list[datetime]:
    """What the rule owes, by counting."""
    first, step = RULES[rule]
    count = 1 if not step else max(0, (until - began - first) // step + 1)
    return [moment for number in range(count) if (moment := began + first + number * step) <= until]


def to_be_sent(policy: str, owed: list[datetime], now: datetime) -> set[datetime]:
    """By the words of the manual, apart from the code under test."""
    fields = POLICIES[policy]
    sent = set(owed)
    if fields.get("catch_up") is not None:
        sent = {moment for moment in owed if now - moment <= MINUTE}
    if fields.get("catch_up") is CatchUp.LATEST and owed and now - owed[-1] <= HOUR:
        sent.add(owed[-1])
    if "expire_after_seconds" in fields:
        sent = {
            moment for moment in sent if now - moment <= timedelta(seconds=fields["expire_after_seconds"])
        }
    return sent


def rows(store: Store, schedule_id: str) -> list[dict[str, Any]]:
    return list(store.mongo.collection("events").find({"schedule_id": schedule_id}).sort("run_time", 1))


def stored(store: Store, schedule_id: str) -> Schedule:
    found = store.schedules.get(schedule_id)
    assert isinstance(found, Schedule)
    return found


@dataclass
class World:
    """Beats and a worker whose clock the test moves."""

    store: Store
    pipeline: Pipeline
    clock: list[datetime]

    def plant(self, rule: str, policy: str, now: datetime, url: str) -> str:
        first, step = RULES[rule]
        start = f"{now + first:%Y%m%dT%H%M%SZ}"
        timing: dict[str, Any] = {"run_at": now + first}
        if step:
            timing = {"rrule": f"DTSTART:{start}\nRRULE:FREQ=SECONDLY;INTERVAL={int(step.total_seconds())}"}
        name = f"{rule} {policy}".replace(" ", "-").replace(",", "")
        self.store.schedules.insert(schedule(now, name, url=url, **timing, **POLICIES[policy]))
        return name

    def beats(self, now: datetime, count: int = BEATS) -> int:
        """Several beats at once, until none has more to do; returns how many pages they did."""

        def beat(_: int) -> int:
            expansion, pages = Expansion(self.store, timeframe_seconds=TIMEFRAME), 1
            while expansion.expand_page(now).full:
                pages += 1
                assert pages < MOST_PAGES, "a beat has no end"
            return pages

        with ThreadPoolExecutor(count) as threads:
            return sum(threads.map(beat, range(count)))

    def deliver(self, now: datetime) -> None:
        """What a dispatch and a worker do about all that is due."""
        self.clock[0] = now
        due = {"state": "ready_queue", "due_at": {"$lte": now}}
        ids = [
            row["_id"]
            for row in self.store.mongo.collection("events").find(due, {"_id": 1}).sort("due_at", 1)
        ]
        for first in range(0, len(ids), 100):
            self.pipeline.delivery.deliver(ids[first : first + 100])
        assert self.pipeline.wait_until_empty(PATIENCE_SECONDS)


@pytest.fixture
def world(store: Store, now: datetime) -> Iterator[World]:
    clock = [now]
    pipeline = Pipeline(
        store, executors(), now=lambda: clock[0], worker="w1", horizon_seconds=5, max_events=10_000
    )
    pipeline.start()
    yield World(store, pipeline, clock)
    pipeline.stop_starting()
    pipeline.interrupt()
    pipeline.stop()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("outage", OUTAGES)
def test_what_is_sent_expired_and_recorded(
    world: World, journal: Journal, now: datetime, outage: str, policy: str
) -> None:
    store, back = world.store, now + OUTAGES[outage]
    # Everything of three days is sent, too, but not here: a quarter of a million callbacks.
    rules = [rule for rule in RULES if (rule, outage, policy) != ("each second", "3 days", "all")]
    planted = {
        rule: world.plant(rule, policy, now, journal.url(f"/{number}")) for number, rule in enumerate(rules)
    }
    world.beats(now)
    world.beats(back)
    world.deliver(back)
    for number, (rule, name) in enumerate(planted.items()):
        owed = occurrences(rule, now, back)
        sent = to_be_sent(policy, owed, back)
        past = [row for row in rows(store, name) if row["run_time"] <= back]
        records = [row for row in past if "missed" in row]
        single = {row["run_time"]: row for row in past if "missed" not in row}
        assert {time for time, row in single.items() if row["state"] == "completed"} == sent, rule
        assert {call.key for call in journal.calls[f"/{number}"]} == {single[time]["_id"] for time in sent}
        assert {row["state"] for time, row in single.items() if time not in sent} <= {"expired"}
        missed = [moment for moment in owed if moment not in single]
        assert len(records) == (1 if missed else 0), rule
        if missed:
            told = records[0]["missed"]
            assert (told["first"], told["last"], told["count"]) == (missed[0], missed[-1], len(missed))
            assert f"{len(missed)} occurrences" in records[0]["status"][-1]["message"]
            assert records[0]["state"] == "expired"
        assert set(single) <= set(owed), rule
        expanded_before = sum(moment <= now + timedelta(seconds=TIMEFRAME) for moment in owed)
        expired = [row for row in past if row["state"] == "expired"]
        assert len(expired) <= MAX_SINGLES + 1 + expanded_before
        for row in expired:
            assert any(word in row["status"][-1]["message"] for word in policy.split(" and "))
            assert "due_at" not in row
            assert row["archived_at"] == back
        following = stored(store, name).next_run_at
        assert following is None or following > back


@pytest.mark.parametrize("policy", ["all", "expire_after"])
@pytest.mark.parametrize("outage", OUTAGES)
def test_a_message_after_an_outage(
    world: World, journal: Journal, now: datetime, outage: str, policy: str
) -> None:
    made = message(now + 2 * SECOND, "m1", url=journal.url("/m"), **POLICIES[policy])
    world.store.messages.insert(made, now)
    world.deliver(now + OUTAGES[outage])
    row = world.store.mongo.collection("events").find_one({"_id": made.id})
    assert row is not None
    late = policy == "expire_after" and OUTAGES[outage] > 2 * MINUTE
    assert row["state"] == ("expired" if late else "completed")
    assert len(journal.calls["/m"]) == (0 if late else 1)


def test_jitter_is_no_lateness(world: World, journal: Journal, now: datetime) -> None:
    """What its jitter has kept until now is on time, and what is later than that is missed."""
    rule = f"DTSTART:{now + SECOND:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=SECONDLY"
    made = schedule(now, "s1", url=journal.url("/a"), rrule=rule, catch_up=CatchUp.NONE, jitter_seconds=300.0)
    world.store.schedules.insert(made)
    back = now + 30 * MINUTE
    world.beats(back)
    world.deliver(back)
    past = [row for row in rows(world.store, "s1") if row["run_time"] <= back]
    told = sum(row["missed"]["count"] if "missed" in row else 1 for row in past)
    assert told == 30 * MINUTE // SECOND
    for row in past:
        if row["state"] in ("ready_queue", "completed"):
            assert due("s1", row["run_time"], 300.0) >= back - MINUTE
        elif "missed" not in row:
            assert row["state"] == "expired"
            assert due("s1", row["run_time"], 300.0) < back - MINUTE


def test_all_makes_everything_due_as_ever(world: World, now: datetime) -> None:
    name = world.plant("each second", "all", now, "http://127.0.0.1:9/")
    expansion = Expansion(world.store, timeframe_seconds=TIMEFRAME)
    made = sum(len(expansion.expand_page(now + 3 * DAY).events) for _ in range(5))
    assert made == len(rows(world.store, name)) > 500
    assert {row["state"] for row in rows(world.store, name)} == {"ready_queue"}


def test_the_work_for_three_days_is_bounded(world: World, now: datetime) -> None:
    """Steps and documents, not seconds: a page looks at so many occurrences at the most."""
    name = world.plant("each second", "none", now, "http://127.0.0.1:9/")
    back = now + 3 * DAY
    pages = world.beats(back, count=1)
    missed = 3 * DAY // SECOND - 60
    # A page may have had its time before it had looked at all that it may.
    assert pages >= missed // OCCURRENCES_A_STEP
    past = [row for row in rows(world.store, name) if row["run_time"] < back - MINUTE]
    assert len(past) == MAX_SINGLES + 1
    assert sum(row["missed"]["count"] if "missed" in row else 1 for row in past) == missed - 1


def test_many_schedules_share_a_page(world: World, now: datetime) -> None:
    """A page writes no more missed events than it makes others."""
    for number in range(8):
        rule = f"DTSTART:{now:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=SECONDLY"
        world.store.schedules.insert(schedule(now, f"s{number}", rrule=rule, catch_up=CatchUp.NONE))
    expansion = Expansion(world.store, timeframe_seconds=TIMEFRAME)
    written = 0
    for _ in range(20):
        more = expansion.expand_page(now + 1_030 * SECOND).full
        before, written = written, world.store.mongo.collection("events").count_documents({})
        assert written - before <= OCCURRENCES_A_PAGE + MAX_SINGLES
        if not more:
            break
    expired = world.store.mongo.collection("events").count_documents({"state": "expired"})
    assert expired == 8 * 969


class Killed(BaseException):
    """SIGKILL, as far as the other processes see it."""


class DyingWrites(MissedOccurrences):
    """A beat that is killed after it has written, and before it has committed."""

    def _write(self, step: MissedStep, now: datetime, session: Any) -> int:
        super()._write(step, now, session)
        raise Killed


@pytest.mark.parametrize("singles", [False, True])
def test_a_beat_that_is_killed_in_a_step_leaves_nothing_of_it(
    world: World, now: datetime, singles: bool
) -> None:
    store, back = world.store, now + (500 * SECOND if singles else DAY)
    name = world.plant("each second", "none", now, "http://127.0.0.1:9/")
    sound, store.missed = store.missed, DyingWrites(store.mongo)
    with pytest.raises(Killed):
        Expansion(store, timeframe_seconds=TIMEFRAME).expand_page(back)
    assert rows(store, name) == []
    store.missed = sound
    store.mongo.collection("schedules").update_one(
        {"_id": name}, {"$unset": {"owner": "", "lease_until": ""}}
    )
    # Time has passed until another beat comes to it: what it would count now is another number.
    world.beats(back + 40 * SECOND)
    total = (back + 40 * SECOND - MINUTE - now) // SECOND
    expired = [row for row in rows(store, name) if row["state"] == "expired"]
    assert sum(row["missed"]["count"] if "missed" in row else 1 for row in expired) == total - 1
    assert sum("missed" in row for row in expired) == (0 if singles else 1)


def test_what_a_killed_beat_had_made_is_not_recorded_again(
    world: World, journal: Journal, now: datetime
) -> None:
    """Its events are there, and its cursor was not moved past them."""
    name = world.plant("each second", "none", now, journal.url("/a"))
    left = [event(now + number * SECOND, name) for number in range(1, 51)]
    world.store.events.insert(left, now, "made")
    back = now + 3 * HOUR
    world.beats(back)
    world.deliver(back)
    past = [row for row in rows(world.store, name) if row["run_time"] <= back]
    (record,) = [row for row in past if "missed" in row]
    assert record["missed"]["count"] + len(past) - 1 == 3 * HOUR // SECOND
    assert {row["state"] for row in past if row["_id"] in {each.id for each in left}} == {"expired"}


def test_a_beat_that_lost_its_claim_writes_nothing(world: World, now: datetime) -> None:
    name = world.plant("each second", "none", now, "http://127.0.0.1:9/")
    expansion, store = Expansion(world.store, timeframe_seconds=TIMEFRAME), world.store

    class AfterAnEdit(MissedOccurrences):
        def settle(self, step: MissedStep, move: MoveCursor, now: datetime) -> int | None:
            made = stored(store, name)
            assert store.schedules.revise(made.revise(now, state=ScheduleState.PAUSED), version=made.version)
            return super().settle(step, move, now)

    store.missed = AfterAnEdit(store.mongo)
    assert not expansion.expand_page(now + HOUR).full
    assert rows(store, name) == []


def test_an_edit_leaves_a_backlog_to_the_policy(world: World, journal: Journal, now: datetime) -> None:
    """A pause in the middle of an outage answers at once, and what it leaves to beats is recorded, too."""
    name = world.plant("each second", "none", now, journal.url("/a"))
    store, back = world.store, now + 3 * DAY
    paused_at = back - HOUR
    made = stored(store, name)
    before = Expansion(store, timeframe_seconds=TIMEFRAME).expand_up_to(made, paused_at)
    assert before.left_to_beats is not None
    store.schedules.revise(
        made.revise(paused_at, state=ScheduleState.PAUSED), version=made.version, owed=before.left_to_beats
    )
    owed = OwedExpansion(store)
    pages = 0
    while owed.expand_page(back):
        pages += 1
        assert pages < MOST_PAGES
    world.deliver(back)
    past = rows(store, name)
    assert len(past) == MAX_SINGLES + 1
    assert {row["state"] for row in past} == {"expired"}
    assert (
        sum(row["missed"]["count"] if "missed" in row else 1 for row in past) == (paused_at - now) // SECOND
    )
    assert journal.calls["/a"] == []
    assert stored(store, name).owed == ()


def test_a_worker_that_dies_while_it_expires_events_leaves_them_to_be_judged_again(
    world: World, journal: Journal, now: datetime
) -> None:
    name = world.plant("minutely", "none", now, journal.url("/a"))
    late = event(now + 3 * SECOND, name)
    world.store.events.insert([late], now, "made")
    back = now + 10 * MINUTE
    world.store.claims.claim([late.id], until=back, now=back, lease_seconds=-5, worker="w0")
    again, _ = world.store.recoveries.recover_workers(back, delay_seconds=0, limit=10)
    assert again == [late.id]
    world.clock[0] = back + SECOND
    world.pipeline.delivery.deliver([late.id])
    assert world.pipeline.wait_until_empty(PATIENCE_SECONDS)
    (row,) = rows(world.store, name)
    assert row["state"] == "expired"
    assert [line["status"] for line in row["status"]].count("expired") == 1


def test_why_names_the_record(world: World, now: datetime) -> None:
    name = world.plant("each second", "none", now, "http://127.0.0.1:9/")
    back = now + DAY
    world.beats(back)
    for at in (now + HOUR, back - 10 * MINUTE):
        _, told, _ = explain_schedule(world.store, name, at, back)
        assert not told.fires
        assert told.reasons[0].code == "expired"
        assert "catch_up is none" in told.reasons[0].message
    _, told, _ = explain_schedule(world.store, name, now + HOUR, back)
    assert "occurrences from" in told.reasons[0].message


def test_a_rule_that_ends_during_the_outage_is_finished(world: World, now: datetime) -> None:
    rule = f"DTSTART:{now + SECOND:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=SECONDLY;COUNT=1500"
    world.store.schedules.insert(schedule(now, "s1", rrule=rule, catch_up=CatchUp.NONE))
    back = now + DAY
    world.beats(back)
    Expansion(world.store, timeframe_seconds=TIMEFRAME).finish_ended(back)
    assert stored(world.store, "s1").state is ScheduleState.FINISHED
    past = rows(world.store, "s1")
    assert sum(row["missed"]["count"] if "missed" in row else 1 for row in past) == 1500
    assert {row["state"] for row in past} == {State.EXPIRED.value}


def test_an_edit_to_a_rule_that_is_over_finishes_a_schedule_that_sends_nothing_late(
    world: World, now: datetime
) -> None:
    rule = f"DTSTART:{now + SECOND:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=SECONDLY;COUNT=3"
    made = schedule(now, "s1", rrule=rule, catch_up=CatchUp.NONE)
    edited = now + MINUTE
    world.store.schedules.insert(replace(made, revision=2, revised_at=edited, cut_pending=True))
    world.beats(edited + SECOND)
    Expansion(world.store, timeframe_seconds=TIMEFRAME).finish_ended(edited + HOUR)
    assert stored(world.store, "s1").state is ScheduleState.FINISHED
    assert rows(world.store, "s1") == []


def test_documents_without_the_field_mean_the_defaults(store: Store, now: datetime) -> None:
    store.schedules.insert(schedule(now, "s1"))
    row = store.mongo.collection("schedules").find_one({"_id": "s1"})
    assert row is not None
    assert "lateness" not in row
    assert stored(store, "s1") == replace(stored(store, "s1"), lateness=schedule(now).lateness)
