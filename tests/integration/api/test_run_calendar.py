"""The calendar of runs: past and future in one, with the forecast's numbers."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.domain.blackout import Blackout
from scheduler_app.domain.figures import FigurePart, FigureSubject
from scheduler_app.domain.forecast import EVERY_CALLBACK, Buckets, ForecastChoice
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.kill_switch import Scope, Target
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.run_calendar import MOST_RARE, RunCalendar, RunOutcome
from scheduler_app.store import Store
from scheduler_app.usecases import forecast
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.usecases.forecast import ForecastService
from scheduler_app.usecases.questions import run_calendar
from scheduler_app.usecases.questions.run_calendar import CalendarPeriod, RunCalendars
from tests.builders import draft, event, message, schedule
from tests.examined import examined
from tests.integration.conftest import NOON
from tests.processes import PATIENCE_SECONDS

Create = Callable[..., dict[str, Any]]
SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=each) for each in (1, 60, 3_600, 86_400))


def read(
    store: Store,
    start: datetime,
    end: datetime,
    width: timedelta | None = HOUR,
    *,
    now: datetime = NOON,
    choice: ForecastChoice = EVERY_CALLBACK,
    zone: str = "UTC",
    **bounds: Any,
) -> RunCalendar:
    period = CalendarPeriod(start=start, end=end, width=width, zone=zone)
    return RunCalendars(store, **{"max_seconds": PATIENCE_SECONDS} | bounds).read(TENANT, period, choice, now)


def total(found: RunCalendar) -> Counter[RunOutcome]:
    return sum((part.counts for part in found.parts), Counter[RunOutcome]())


def ended(store: Store, schedule_id: str, due: datetime, state: str, **fields: Any) -> None:
    """An event with that end, or on its way to one."""
    store.events.insert([event(due, schedule_id)], due, "made")
    gone = {"due_at": ""} if "due_at" not in fields else {}
    change: dict[str, Any] = {"$set": {"state": state, "archived_at": due + SECOND} | fields}
    if gone:
        change["$unset"] = gone
    store.mongo.collection("events").update_one({"schedule_id": schedule_id, "run_time": due}, change)


def test_the_past_counts_by_what_became_of_each_run(store: Store) -> None:
    past = NOON - 5 * HOUR
    store.schedules.insert(schedule(past, "s1", run_at=NOON - HOUR))
    ends: list[tuple[str, dict[str, Any]]] = [
        ("completed", {"attempt": 1}),
        ("completed", {"attempt": 3}),
        ("error", {"attempt": 4}),
        ("expired", {}),
        ("skipped", {}),
        ("cancelled", {}),
        ("cancelled", {"archived_at": past}),
        ("ready_queue", {"due_at": NOON + DAY, "held": "all"}),
        ("retrying", {"due_at": NOON - MINUTE}),
    ]
    for number, (state, fields) in enumerate(ends):
        ended(store, "s1", NOON - 3 * HOUR + number * MINUTE, state, **fields)
    found = read(store, NOON - 4 * HOUR, NOON)
    assert [dict(part.counts) for part in found.parts] == [
        {},
        {
            RunOutcome.DONE: 2,
            RunOutcome.FAILED: 1,
            RunOutcome.DID_NOT_RUN: 3,
            RunOutcome.HELD: 1,
            RunOutcome.WAITING: 1,
        },
        {},
        {},
    ]
    assert [part.tried_again for part in found.parts] == [0, 1, 0, 0]
    assert found.notes == []
    # What is held is due in a day only because nothing looks at it until then: that is no run to come.
    later = read(store, NOON, NOON + 2 * DAY)
    assert later.parts
    assert not total(later)


def test_a_run_is_counted_once_whether_it_is_an_event_or_still_a_rule(store: Store) -> None:
    store.schedules.insert(schedule(NOON - HOUR, "s1", rrule="FREQ=MINUTELY;INTERVAL=5"))
    Expansion(store, timeframe_seconds=600).expand_page(NOON - HOUR)
    Expansion(store, timeframe_seconds=600).expand_page(NOON)
    store.mongo.collection("events").update_many(
        {"run_time": {"$lt": NOON}},
        {"$set": {"state": "completed", "attempt": 1}, "$unset": {"due_at": ""}},
    )
    found = total(read(store, NOON - HOUR, NOON + HOUR))
    # Beats did nothing from ten minutes after the schedule was made until now.
    assert found[RunOutcome.DONE] + found[RunOutcome.TO_COME] == 24
    assert found[RunOutcome.TO_COME] == 12


RULES = (
    "FREQ=MINUTELY;INTERVAL=7",
    "FREQ=HOURLY;BYMINUTE=0,30",
    "FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=15,45",
    "FREQ=WEEKLY;BYDAY=SU;BYHOUR=2;BYMINUTE=30",
    "FREQ=SECONDLY;INTERVAL=20",
    "FREQ=MONTHLY;BYDAY=-1SU",
)


@pytest.mark.parametrize("start", [datetime(2026, 10, 24, tzinfo=UTC), datetime(2027, 3, 27, tzinfo=UTC)])
def test_calendar_forecast_next_and_what_is_made_agree_over_a_clock_change(
    store: Store, start: datetime
) -> None:
    draw = Random(start.year)
    made = []
    for number in range(20):
        zone = draw.choice(["Europe/Zurich", "America/New_York", "UTC", "Australia/Lord_Howe"])
        rules = draw.sample(RULES, draw.randint(1, 2))
        begin = f"DTSTART;TZID={zone}:20260101T000000" if zone != "UTC" else "DTSTART:20260101T000000Z"
        text = "\n".join([begin, *(f"RRULE:{rule}" for rule in rules)])
        # With jitter, more than a hundred runs an hour are estimated.
        jitter = 0.0 if "SECONDLY" in text else draw.choice([0.0, 900.0])
        made.append(schedule(start - HOUR, f"s{number}", rrule=text, jitter_seconds=jitter))
    assert all(store.schedules.insert_many(made))
    end = start + 2 * DAY
    shown = read(store, start, end, now=start)
    buckets = Buckets(start, end, HOUR)
    counted: Counter[int] = Counter()
    for cell, count in ForecastService(store, max_seconds=300).forecast(TENANT, buckets, start).cells.items():
        counted[cell.bucket] += count
    assert [part.counts[RunOutcome.TO_COME] for part in shown.parts] == [
        counted[number] for number in range(48)
    ]
    assert shown.notes == []
    exact = [each for each in made if not each.jitter_seconds]
    for each in exact:
        alone = read(store, start, end, now=start, choice=ForecastChoice(each.id))
        assert total(alone)[RunOutcome.TO_COME] == len(each.recurrence().between(start, end))
    expansion = Expansion(store, timeframe_seconds=600)
    while expansion.expand_page(end - 600 * SECOND).full:
        continue
    by_hour = Counter(
        buckets.of(row["due_at"])
        for row in store.mongo.collection("events").find({}, {"due_at": 1})
        if start <= row["due_at"] < end
    )
    assert {hour: count for hour, count in counted.items() if count} == by_hour


def test_a_day_of_a_zone_is_as_long_as_it_is_there(store: Store) -> None:
    start = datetime(2026, 10, 23, 22, tzinfo=UTC)  # midnight in Zurich, before the day of 25 hours
    rule = "DTSTART;TZID=Europe/Zurich:20260101T000000\nRRULE:FREQ=HOURLY"
    store.schedules.insert(schedule(start - HOUR, "s1", rrule=rule))
    found = read(store, start, start + 3 * DAY + HOUR, None, now=start, zone="Europe/Zurich")
    assert [(part.end - part.start) // HOUR for part in found.parts] == [24, 25, 24]
    assert [part.counts[RunOutcome.TO_COME] for part in found.parts] == [24, 25, 24]
    half = datetime(2026, 10, 23, 18, 30, tzinfo=UTC)  # midnight in Kolkata
    found = read(store, half, half + 2 * DAY, None, now=half, zone="Asia/Kolkata")
    assert [(part.end - part.start) // HOUR for part in found.parts] == [24, 24]


def test_what_runs_rarely_is_named_with_its_past_and_its_future(store: Store) -> None:
    week = NOON - 3 * DAY
    daily = schedule(week, "daily", rrule=f"DTSTART:{week:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=DAILY")
    store.schedules.insert(daily)
    store.schedules.insert(schedule(week, "hourly", rrule="FREQ=HOURLY"))
    for number in range(3):
        ended(store, "daily", week + number * DAY, "completed" if number else "error", attempt=1)
    for number in range(20):
        ended(store, "hourly", week + number * HOUR, "completed", attempt=1)
    # It was rare up to now alone: it ends within the hour.
    last = schedule(NOON, "ending", rrule="FREQ=MINUTELY;INTERVAL=20;COUNT=3")
    store.schedules.insert(last)
    for number in range(MOST_RARE):
        ended(store, "ending", week + number * HOUR, "completed", attempt=1)
    Expansion(store, timeframe_seconds=600).expand_these([daily], NOON - 3 * DAY, NOON - HOUR)
    store.mongo.collection("schedules").update_one({"_id": "daily"}, {"$set": {"next_run_at": NOON}})
    found = read(store, week, week + 7 * DAY)
    (rare,) = found.rare
    assert (rare.id, rare.name, found.rare_omitted) == ("daily", "test", 0)
    assert [run.outcome for run in rare.runs] == [
        RunOutcome.FAILED,
        *[RunOutcome.DONE] * 2,
        *[RunOutcome.TO_COME] * 4,
    ]
    assert [run.at for run in rare.runs] == [week + number * DAY for number in range(7)]
    assert [run.event_id is None for run in rare.runs] == [False] * 3 + [True] * 4


def test_filters_choose_schedules_by_tag_destination_and_id_and_messages_by_destination(
    store: Store,
) -> None:
    named = draft(url=NOT_GIVEN, destination="erp", rrule="FREQ=HOURLY").schedule(
        "named", NOON, max_retries=1
    )
    store.schedules.insert(named)
    store.schedules.insert(schedule(NOON, "tagged", rrule="FREQ=HOURLY", tags=("t",)))
    store.schedules.insert(schedule(NOON, "other", rrule="FREQ=HOURLY"))
    past = NOON - HOUR
    for name in ("named", "tagged", "other"):
        ended(store, name, past, "completed", attempt=1)
    store.messages.insert(message(NOON + HOUR, "m1", url=NOT_GIVEN, destination="erp"), NOON)
    store.messages.insert(message(past, "m2", url=NOT_GIVEN, destination="erp"), past)
    store.messages.insert(message(NOON + HOUR, "m3"), NOON)
    Expansion(store, timeframe_seconds=600).expand_page(NOON)

    def numbers(**choice: Any) -> tuple[int, int, int]:
        found = total(read(store, NOON - 2 * HOUR, NOON + 4 * HOUR, choice=ForecastChoice(**choice)))
        return found[RunOutcome.DONE], found[RunOutcome.WAITING], found[RunOutcome.TO_COME]

    assert numbers() == (3, 1, 14)
    assert numbers(tag="t") == (1, 0, 4)
    assert numbers(destination="erp") == (1, 1, 5)
    assert numbers(schedule_id="other") == (1, 0, 4)
    assert numbers(schedule_id="other", tag="t") == (0, 0, 0)
    assert numbers(destination="none") == (0, 0, 0)


def test_blackouts_are_told_of_what_is_asked_for(store: Store) -> None:
    store.schedules.insert(schedule(NOON, "s1", rrule="FREQ=HOURLY", tags=("t",)))
    for target in (Target(TENANT, Scope.TAG, "t"), Target(TENANT, Scope.TAG, "u"), Target("acme", Scope.ALL)):
        given = {"run_at": NOON + HOUR}
        made = Blackout.of(f"b-{target.name}", target, given, HOUR, "skip", NOON, timezone="UTC")
        assert store.blackouts.put(made)
    found = read(store, NOON, NOON + 4 * DAY)
    assert [(each.blackout.name, each.start, each.end) for each in found.blackouts] == [
        ("b-t", NOON + HOUR, NOON + 2 * HOUR),
        ("b-u", NOON + HOUR, NOON + 2 * HOUR),
    ]
    assert found.parts[1].counts[RunOutcome.TO_COME] == 0
    chosen = read(store, NOON, NOON + 4 * DAY, choice=ForecastChoice("s1"))
    assert [each.blackout.name for each in chosen.blackouts] == ["b-t"]
    chosen = read(store, NOON, NOON + 4 * DAY, choice=ForecastChoice(tag="u"))
    assert [each.blackout.name for each in chosen.blackouts] == ["b-u"]


def test_what_is_beyond_its_bounds_is_said(store: Store) -> None:
    store.schedules.insert(schedule(NOON - DAY, "s1", rrule="FREQ=HOURLY"))
    for number in range(20):
        ended(store, "s1", NOON - (number + 1) * MINUTE, "completed", attempt=1)
    for choice in (EVERY_CALLBACK, ForecastChoice("s1")):
        found = read(store, NOON - HOUR, NOON, MINUTE, choice=choice, most_runs=5)
        assert [part.counts[RunOutcome.DONE] for part in found.parts[-6:]] == [0, 1, 1, 1, 1, 1]
        assert found.notes == ["There were more than 5 runs: those beyond are left out, and none is named."]
        assert found.rare == []


def test_of_more_runs_than_are_read_those_are_shown_that_workers_counted(store: Store) -> None:
    store.schedules.insert(schedule(NOON - DAY, "s1", rrule="FREQ=HOURLY", tags=("t",)))
    rule = f"DTSTART:{NOON - DAY:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=DAILY"
    store.schedules.insert(schedule(NOON - DAY, "rare", rrule=rule, tags=("t",)))
    for number in range(20):
        ended(store, "s1", NOON - (number + 1) * MINUTE, "completed", attempt=1)
    ended(store, "rare", NOON - HOUR, "error", attempt=1)
    for subject in (FigureSubject(TENANT), FigureSubject(TENANT, "tag", "t")):
        for hours, counts in ((-3, {"completed": 2}), (-1, {"completed": 20, "error": 1})):
            part = FigurePart(NOON + hours * HOUR, Counter(counts))
            store.figure_counters.add([(subject, HOUR, part)])
    span = (NOON - 3 * HOUR, NOON + DAY + HOUR)
    for choice in (EVERY_CALLBACK, ForecastChoice(tag="t")):
        found = read(store, *span, choice=choice, most_runs=5)
        past = [(part.counts[RunOutcome.DONE], part.counts[RunOutcome.FAILED]) for part in found.parts[:3]]
        assert past == [(2, 0), (0, 0), (20, 1)]
        (note,) = found.notes
        assert "counted when they ended" in note
        # What runs again, and rarely, is named with its past.
        (rare,) = found.rare
        assert (rare.id, rare.runs[0].outcome) == ("rare", RunOutcome.FAILED)
    # What ran before the first hour that was counted is missing from the counters, if anything did.
    since = (NOON - 6 * HOUR, NOON)
    assert total(read(store, *since, most_runs=5))[RunOutcome.DONE] == 22
    ended(store, "s1", NOON - 4 * HOUR, "completed", attempt=1)
    # Not counted apart, in other parts, or not since then: the newest runs are read.
    for choice, start, width in (
        (ForecastChoice("s1"), NOON - 3 * HOUR, HOUR),
        (EVERY_CALLBACK, NOON - 3 * HOUR, 30 * MINUTE),
        (EVERY_CALLBACK, NOON - 4 * HOUR, HOUR),
    ):
        found = read(store, start, NOON, width, choice=choice, most_runs=5)
        assert total(found)[RunOutcome.DONE] == 5
        assert "left out" in found.notes[0]
    # Smaller parts are made of minutes, which are kept of everything and of destinations.
    part = FigurePart(NOON - 40 * MINUTE, Counter(completed=7))
    store.figure_counters.add([(FigureSubject(TENANT), MINUTE, part)])
    found = read(store, NOON - 50 * MINUTE, NOON, 5 * MINUTE, most_runs=5)
    assert [part.counts[RunOutcome.DONE] for part in found.parts] == [0, 0, 7, *[0] * 7]


def test_of_what_runs_often_a_few_runs_are_read_to_know_that(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    often = [event(NOON - (number + 1) * MINUTE, "often") for number in range(300)]
    few = [event(NOON - (number + 1) * HOUR, "few") for number in range(MOST_RARE)]
    store.events.insert([*often, *few, event(NOON - HOUR, "other")], NOON, "made")
    for name in ("often", "few", "none"):
        store.schedules.insert(schedule(NOON, name, rrule="FREQ=DAILY"))
    buckets = Buckets(NOON - DAY, NOON, HOUR)
    ids = ["often", "few", "none"]
    found, read_for_it = examined(store, lambda: store.run_counting.name(ids, buckets, NOON))
    assert (found.frequent, list(found.rare), found.counts) == ({"often"}, ["few"], Counter())
    assert [run.at for run in found.rare["few"]] == [NOON - each * HOUR for each in range(MOST_RARE, 0, -1)]
    assert read_for_it.documents <= 3 + MOST_RARE + 1 + MOST_RARE + 1
    # Of many that run again, the rarest are named; the others are counted.
    monkeypatch.setattr(run_calendar, "MOST_RUNNING_AGAIN", 1)
    store.figure_counters.add([(FigureSubject(TENANT), HOUR, FigurePart(NOON - 5 * HOUR))])
    calendar = read(store, NOON - 5 * HOUR, NOON + 2 * DAY, most_runs=5)
    assert len(calendar.rare) + calendar.rare_omitted == 3
    assert len(calendar.rare) <= 1


@pytest.fixture
def kept_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is shown until the end of the test, however quickly it was counted."""
    monkeypatch.setattr(run_calendar, "KEPT_TIMES", 1e9)
    monkeypatch.setattr(run_calendar, "KEPT_SECONDS", PATIENCE_SECONDS)


def test_what_took_long_to_count_is_shown_for_a_while_and_says_when_it_was_counted(
    store: Store, kept_long: None
) -> None:
    store.schedules.insert(schedule(NOON, "s1", rrule="FREQ=HOURLY"))
    slow, quick = RunCalendars(store, kept_from=-1.0), RunCalendars(store, kept_from=300.0)
    day = CalendarPeriod(start=NOON, end=NOON + DAY, width=HOUR)
    week = CalendarPeriod(start=NOON, end=NOON + 7 * DAY, width=HOUR)

    def shown(of: RunCalendars, period: CalendarPeriod, now: datetime) -> tuple[int, datetime]:
        found = of.read(TENANT, period, EVERY_CALLBACK, now)
        return total(found)[RunOutcome.TO_COME], found.to_come_at

    assert shown(slow, day, NOON) == shown(quick, day, NOON) == (24, NOON)
    store.schedules.insert(schedule(NOON, "s2", rrule="FREQ=HOURLY"))
    assert shown(slow, day, NOON + SECOND) == (24, NOON)
    assert shown(quick, day, NOON + SECOND) == (48, NOON + SECOND)
    assert shown(slow, week, NOON + SECOND) == (2 * 168, NOON + SECOND)


def test_a_first_answer_is_not_kept_and_a_whole_one_is_shown_in_its_place(
    store: Store, monkeypatch: pytest.MonkeyPatch, kept_long: None
) -> None:
    monkeypatch.setattr(forecast, "MANY_SCHEDULES", 2)
    for number in range(3):
        rule = f"FREQ=MINUTELY;INTERVAL={10 * (number + 1)}"
        store.schedules.insert(schedule(NOON, f"s{number}", rrule=rule))
    calendars = RunCalendars(store, max_seconds=PATIENCE_SECONDS, kept_from=-1.0, first_seconds=-1.0)
    day = CalendarPeriod(start=NOON, end=NOON + DAY, width=HOUR)

    def answer(*, first: bool, by: RunCalendars = calendars) -> tuple[bool, bool, int]:
        found = by.read(TENANT, day, EVERY_CALLBACK, NOON, first=first)
        return found.is_first_answer, bool(found.notes), total(found)[RunOutcome.TO_COME]

    assert answer(first=True)[:2] == (True, True)
    with monkeypatch.context() as patched:
        patched.setattr(run_calendar, "MOST_EVALUATED_FIRST", 2)
        patient = RunCalendars(store, max_seconds=300.0, kept_from=300.0, first_seconds=300.0)
        assert answer(first=True, by=patient)[:2] == (True, True)
        assert answer(first=False, by=patient)[:2] == (False, False)
    assert answer(first=False) == (False, False, 144 + 72 + 48)
    assert answer(first=True) == (False, False, 144 + 72 + 48)


def test_what_is_kept_of_calendars_is_bounded_and_a_tenant_with_much_takes_none_of_the_others(
    store: Store, monkeypatch: pytest.MonkeyPatch, kept_long: None
) -> None:
    monkeypatch.setattr(run_calendar, "LEAST_KEPT", 2)
    monkeypatch.setattr(run_calendar, "MOST_KEPT", 20)
    for number in range(4):
        store.schedules.insert(schedule(NOON, f"s{number}", rrule="FREQ=HOURLY"))
    calendars = RunCalendars(store, kept_from=-1.0)
    day = CalendarPeriod(start=NOON, end=NOON + DAY, width=HOUR)
    calendars.read("acme", day, EVERY_CALLBACK, NOON)
    # Each names four schedules: 20 are five of them, or four and what counts for two.
    for number in range(30):
        other = CalendarPeriod(start=NOON, end=NOON + DAY + number * SECOND, width=DAY)
        calendars.read(TENANT, other, EVERY_CALLBACK, NOON)
    kept = [(tenant, round((period.end - NOON - DAY) / SECOND)) for tenant, period, _ in calendars._kept]
    assert kept == [("acme", 0), *((TENANT, number) for number in range(26, 30))]
    assert calendars.read("acme", day, EVERY_CALLBACK, NOON + SECOND).to_come_at == NOON


def test_the_route_answers_with_parts_and_names(client: FlaskClient, create: Create) -> None:
    made = create(rrule="DTSTART:20400101T000000Z\nRRULE:FREQ=HOURLY;COUNT=2", tags=["t"])
    query = {"from": "2040-01-01T00:00:00Z", "to": "2040-01-01T03:00:00Z", "tag": "t"}
    found = client.get("/api/calendar", query_string=query).get_json()
    assert [(part["from"], part["to_come"]) for part in found["buckets"]] == [
        ("2040-01-01T00:00:00Z", 1),
        ("2040-01-01T01:00:00Z", 1),
        ("2040-01-01T02:00:00Z", 0),
    ]
    assert found["rare"] == [
        {
            "schedule_id": made["id"],
            "name": "test",
            "runs": [
                {"at": "2040-01-01T00:00:00Z", "outcome": "to_come"},
                {"at": "2040-01-01T01:00:00Z", "outcome": "to_come"},
            ],
        }
    ]
    assert (found["sampled"], found["notes"]) == (False, [])
    week = client.get("/api/calendar?bucket=86400&timezone=Europe/Zurich").get_json()
    assert len(week["buckets"]) in (7, 8)  # eight where a clock change makes the week longer or shorter


def test_closed_days_are_those_of_the_calendars_that_are_observed(
    client: FlaskClient, create: Create
) -> None:
    days = {"dates": [{"date": "2040-01-03", "name": "Founders' Day"}], "weekend": ["SA"]}
    for name in ("bank", "unused"):
        assert client.put(f"/api/calendars/{name}", json=days).status_code == 201
    rule = "DTSTART:20400101T000000Z\nRRULE:FREQ=HOURLY"
    create(rrule=rule, calendar="bank", on_holiday="skip")
    query = {"from": "2040-01-01T00:00:00Z", "to": "2040-01-08T00:00:00Z"}
    found = client.get("/api/calendar", query_string=query).get_json()
    assert found["closed_days"] == [
        {"calendar": "bank", "date": "2040-01-03", "name": "Founders' Day", "kind": "holiday"},
        {"calendar": "bank", "date": "2040-01-07", "name": "Saturday", "kind": "weekend"},
    ]
    assert sum(part["to_come"] for part in found["buckets"]) == 5 * 24


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"from": "2040-01-02T00:00:00Z", "to": "2040-01-01T00:00:00Z"}, "to"),
        ({"from": "2040-01-01T00:00:00Z", "to": "2042-01-01T00:00:00Z"}, "to"),
        ({"from": "2040-01-01T00:00:00Z", "to": "2040-06-01T00:00:00Z", "bucket": "86400"}, "to"),
        ({"bucket": "60"}, "bucket"),
        ({"bucket": "1"}, "bucket"),
        ({"timezone": "Mars/Base"}, "timezone"),
        ({"until": "2040-01-01T00:00:00Z"}, "until"),
    ],
)
def test_a_wrong_question_is_refused_by_its_field(client: FlaskClient, query: Any, field: str) -> None:
    answer = client.get("/api/calendar", query_string=query)
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["pointer"].endswith(field)
