"""Late events expire where a worker claims them: by their own policy, with a sentence, without a request."""

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from prometheus_client import REGISTRY

from scheduler_app.domain.calendars import Calendar, NamedCalendar, NamedDate
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.instants import whole_milliseconds
from scheduler_app.domain.lateness import CatchUp
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.states import Kind, State
from scheduler_app.store import Store
from scheduler_app.store.paging import PageRequest
from tests.acceptance.journal import Journal
from tests.builders import event, message, schedule
from tests.integration.actions.receiver import says
from tests.integration.usecases.test_delivery import Bench, bench, journal, start

__all__ = ["bench", "journal", "start"]

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def last_line(bench: Bench, event_id: str) -> str:
    return str(bench.document(event_id)["status"][-1]["message"])


@pytest.fixture(autouse=True)
def _held(bench: Bench) -> None:
    """What is not late stays so, however long this machine takes."""
    bench.time.hold()


#: Half a minute before the next occurrence of a rule of whole minutes.
NEARLY_AN_HOUR = HOUR - MINUTE / 2


def planned(
    bench: Bench, url: str, rule: str = "FREQ=MINUTELY", age: timedelta = NEARLY_AN_HOUR, **fields: Any
) -> Schedule:
    """A schedule that was created long ago, with the events that a beat would have made by now."""
    made = schedule(bench.time() - age, "s1", url=url, rrule=rule, **fields)
    bench.store.schedules.insert(made)
    return made


def occurrences(bench: Bench, made: Schedule) -> list[str]:
    """Events of all that is due, oldest first."""
    ids = []
    for instant in made.recurrence().between(made.created_at, bench.time()):
        row = event(instant, made.id, made.revision)
        bench.store.events.insert([row], instant, "made")
        ids.append(row.id)
    return ids


def expired(policy: str) -> float:
    return REGISTRY.get_sample_value("scheduler_events_expired_total", {"policy": policy}) or 0.0


def test_without_a_policy_everything_is_sent(bench: Bench, journal: Journal) -> None:
    ids = occurrences(bench, planned(bench, journal.url("/a")))
    assert len(ids) > 50
    bench.deliver(ids)
    assert {bench.state(each) for each in ids} == {"completed"}


def test_none_sends_what_is_not_late_and_expires_the_rest(bench: Bench, journal: Journal) -> None:
    counted = expired("catch_up_none")
    age = 10 * MINUTE + 10 * SECOND
    made = planned(bench, journal.url("/a"), "FREQ=SECONDLY;INTERVAL=20", age, catch_up=CatchUp.NONE)
    ids = occurrences(bench, made)
    border = bench.time() - MINUTE
    bench.deliver(ids)
    for each in ids:
        late = bench.document(each)["run_time"] < border
        assert bench.state(each) == ("expired" if late else "completed"), each
    assert {call.key for call in journal.calls["/a"]} == {
        each for each in ids if bench.state(each) == "completed"
    }
    assert last_line(bench, ids[0]).endswith("late, more than late_after_seconds (60), and catch_up is none")
    assert "due_at" not in bench.document(ids[0])
    assert bench.document(ids[0])["attempts"] == []
    assert expired("catch_up_none") - counted == sum(bench.state(each) == "expired" for each in ids)


def test_latest_sends_the_newest_alone(bench: Bench, journal: Journal) -> None:
    made = planned(bench, journal.url("/a"), "FREQ=MINUTELY;INTERVAL=10", catch_up=CatchUp.LATEST)
    ids = occurrences(bench, made)
    older, newest = ids[:-1], ids[-1]
    # Each comes by itself: no page needs to know of another.
    for each in older:
        bench.deliver([each])
    assert {bench.state(each) for each in older} == {"expired"}
    # The first ones may be beyond the window meanwhile.
    assert "catch_up is latest: a later occurrence, of " in last_line(bench, older[-1])
    bench.deliver([newest])
    assert bench.state(newest) == "completed"


def test_latest_in_one_batch(bench: Bench, journal: Journal) -> None:
    made = planned(bench, journal.url("/a"), "FREQ=MINUTELY;INTERVAL=10", catch_up=CatchUp.LATEST)
    ids = occurrences(bench, made)
    bench.deliver(ids)
    assert [bench.state(each) for each in ids] == ["expired"] * (len(ids) - 1) + ["completed"]


def test_latest_sends_nothing_beyond_its_window(bench: Bench, journal: Journal) -> None:
    made = planned(
        bench,
        journal.url("/a"),
        f"DTSTART:{bench.time() - 2 * HOUR:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=DAILY",
        3 * HOUR,
        catch_up=CatchUp.LATEST,
    )
    (only,) = occurrences(bench, made)
    bench.deliver([only])
    assert bench.state(only) == "expired"
    assert "catch_up_window_seconds (3600)" in last_line(bench, only)


def test_latest_sends_a_late_one_off(bench: Bench, journal: Journal) -> None:
    due = whole_milliseconds(bench.time() - 10 * MINUTE)
    made = schedule(bench.time() - HOUR, "s1", url=journal.url("/a"), run_at=due, catch_up=CatchUp.LATEST)
    bench.store.schedules.insert(made)
    only = bench.event(made.recurrence().between(due - SECOND, bench.time())[0])
    bench.deliver([only])
    assert bench.state(only) == "completed"


def test_latest_asks_the_rule_with_its_calendar(bench: Bench, journal: Journal) -> None:
    """From the last full hour on it is a closed day, somewhere: nothing later than the late one was due."""
    midnight = bench.time().replace(minute=0, second=0, microsecond=0)
    zone = f"Etc/GMT+{midnight.hour}" if midnight.hour <= 12 else f"Etc/GMT-{24 - midnight.hour}"
    closed = Calendar.of(dates=(NamedDate(midnight.astimezone(ZoneInfo(zone)).date()),), weekend=())
    named = NamedCalendar(TENANT, "shop", closed, midnight, midnight)
    bench.store.calendars.insert(named)
    rule = f"DTSTART;TZID={zone}:{(midnight - 5 * MINUTE).astimezone(ZoneInfo(zone)):%Y%m%dT%H%M%S}"
    made = planned(
        bench,
        journal.url("/a"),
        f"{rule}\nRRULE:FREQ=MINUTELY;INTERVAL=5",
        3 * HOUR,
        catch_up=CatchUp.LATEST,
        catch_up_window_seconds=7200.0,
        late_after_seconds=1.0,
        calendar="shop",
        named_calendar=named,
    )
    (newest,) = occurrences(bench, made)
    bench.deliver([newest])
    assert bench.state(newest) == "completed"


def test_latest_finds_the_later_occurrence_of_a_rule_with_a_calendar(bench: Bench, journal: Journal) -> None:
    now = bench.time()
    closed = Calendar.of(dates=(NamedDate((now - 240 * HOUR).date()),), weekend=())
    named = NamedCalendar(TENANT, "shop", closed, now, now)
    bench.store.calendars.insert(named)
    made = planned(
        bench,
        journal.url("/a"),
        "FREQ=MINUTELY;INTERVAL=10",
        catch_up=CatchUp.LATEST,
        calendar="shop",
        named_calendar=named,
    )
    first, *_, newest = occurrences(bench, made)
    for each in (first, newest):
        bench.deliver([each])
    assert [bench.state(each) for each in (first, newest)] == ["expired", "completed"]


def test_a_revision_that_is_over_is_judged_by_what_was_made_of_it(bench: Bench, journal: Journal) -> None:
    """Its rule may be gone, so later events are looked for, whatever became of them."""
    made = planned(bench, journal.url("/a"), "FREQ=MINUTELY;INTERVAL=10", catch_up=CatchUp.LATEST)
    ids = occurrences(bench, made)
    paused = made.revise(bench.time(), state=ScheduleState.PAUSED)
    bench.store.schedules.revise(paused, version=made.version)
    for each in ids:
        bench.deliver([each])
    assert [bench.state(each) for each in ids] == ["expired"] * (len(ids) - 1) + ["completed"]


def test_what_a_pause_withdrew_is_cancelled_and_does_not_expire(bench: Bench, journal: Journal) -> None:
    made = planned(bench, journal.url("/a"), catch_up=CatchUp.NONE)
    late = occurrences(bench, made)[0]
    paused = made.revise(made.created_at, state=ScheduleState.PAUSED)
    bench.store.schedules.revise(paused, version=made.version)
    bench.deliver([late])
    assert bench.state(late) == "cancelled"


def test_what_a_person_asked_for_is_not_caught_up_with(bench: Bench, journal: Journal) -> None:
    planned(bench, journal.url("/a"), catch_up=CatchUp.NONE)
    asked = bench.event(bench.time() - 10 * MINUTE, kind=Kind.MANUAL)
    bench.deliver([asked])
    assert bench.state(asked) == "completed"


def test_a_retry_is_not_caught_up_with(bench: Bench, journal: Journal) -> None:
    """Its first attempt was on time: how often it is tried again is said by other fields."""
    planned(bench, journal.url("/a"), catch_up=CatchUp.NONE)
    tried = bench.event(bench.time() - 10 * MINUTE)
    bench.store.mongo.collection("events").update_one({"_id": tried}, {"$set": {"attempt": 1}})
    bench.deliver([tried])
    assert bench.state(tried) == "completed"


@pytest.mark.parametrize(
    ("kind", "jitter_seconds", "is_due_anew"),
    [
        (Kind.SCHEDULED, 0.0, False),
        (Kind.SCHEDULED, 5.0, False),
        (Kind.MANUAL, 0.0, False),
        # Neither what a person asked for nor what was redriven waits for the jitter of its schedule.
        (Kind.MANUAL, 3_600.0, False),
        (Kind.SCHEDULED, 3_600.0, True),
    ],
)
def test_expire_after_holds_for_every_event_of_a_schedule(
    bench: Bench, journal: Journal, kind: Kind, jitter_seconds: float, *, is_due_anew: bool
) -> None:
    planned(bench, journal.url("/a"), expire_after_seconds=90.0, jitter_seconds=jitter_seconds)
    early, late = (bench.event(bench.time() - seconds * SECOND, kind=kind) for seconds in (80, 100))
    if is_due_anew:
        anew = {"$add": ["$run_time", 1_000]}
        redriven = [{"$set": {"due_at": anew, "due_since": anew}}]
        bench.store.mongo.collection("events").update_many({}, redriven)
    bench.deliver([early, late])
    assert bench.state(early) == "completed"
    assert bench.state(late) == "expired"
    assert last_line(bench, late).endswith("after it was due, which is more than expire_after_seconds (90)")


def test_a_message_expires_too(bench: Bench, journal: Journal) -> None:
    now = bench.time()
    late = message(now - 100 * SECOND, "late", url=journal.url("/a"), expire_after_seconds=90.0)
    fine = message(now - 100 * SECOND, "fine", url=journal.url("/a"))
    for each in (late, fine):
        bench.store.messages.insert(each, now)
    bench.deliver([late.id, fine.id])
    assert (bench.state(late.id), bench.state(fine.id)) == ("expired", "completed")


def test_a_retry_that_would_come_too_late_is_none(bench: Bench, journal: Journal) -> None:
    planned(
        bench,
        journal.script("/down", says("503 Service Unavailable")),
        expire_after_seconds=30.0,
        backoff_seconds=100.0,
    )
    tried = bench.event(bench.time() - SECOND)
    bench.deliver([tried])
    assert bench.state(tried) == "expired"
    said = last_line(bench, tried)
    assert said.startswith("Expired: attempt 1 failed: ")
    assert "503" in said
    assert said.endswith("more than expire_after_seconds (30) after it was due")
    assert bench.document(tried)["attempts"][0]["status_code"] == 503


def test_a_redrive_begins_anew(bench: Bench, journal: Journal) -> None:
    planned(bench, journal.url("/a"), expire_after_seconds=30.0, catch_up=CatchUp.NONE)
    dead = bench.event(bench.time() - HOUR)
    bench.store.mongo.collection("events").update_one(
        {"_id": dead}, {"$set": {"state": "error", "archived_at": bench.time()}, "$unset": {"due_at": ""}}
    )
    bench.store.events.redrive([dead], bench.time(), "redriven")
    bench.deliver([dead])
    assert bench.state(dead) == "completed"


def test_expired_events_are_listed_by_their_state(bench: Bench, journal: Journal, store: Store) -> None:
    ids = occurrences(bench, planned(bench, journal.url("/a"), catch_up=CatchUp.LATEST))
    bench.deliver(ids)
    page = store.event_lists.page(TENANT, PageRequest(limit=500), schedule_id="s1", states=[State.EXPIRED])
    assert [each.id for each in page.rows] == ids[:-1][::-1]
