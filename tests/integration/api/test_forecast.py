"""The forecast, and whether what comes is what it said."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.api.routes import preview as forecast_route
from scheduler_app.domain.blackout import Blackout, BlackoutOutlooks, BlackoutPolicy
from scheduler_app.domain.forecast import (
    Buckets,
    Cell,
    Counts,
    ForecastSource,
    PlannedSchedule,
    Withheld,
    occurrences_by_bucket,
)
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.kill_switch import Scope, Target
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.store import Store, forecasts
from scheduler_app.usecases import forecast
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.usecases.forecast import ForecastService
from tests.builders import draft, event, message, schedule
from tests.integration.conftest import NOON

Create = Callable[..., dict[str, Any]]
SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=each) for each in (1, 60, 3_600, 86_400))
MIDNIGHT = NOON + 12 * HOUR


def by_bucket(store: Store, buckets: Buckets, **bounds: Any) -> Counter[int]:
    counts: Counter[int] = Counter()
    for cell, count in ForecastService(store, **bounds).forecast(TENANT, buckets, NOON).cells.items():
        counts[cell.bucket] += count
    return counts


@pytest.mark.parametrize(
    ("count", "busiest"),
    # Of ten thousand, the busiest second has at most three times the mean.
    [(1_000, 10), pytest.param(10_000, 50, marks=pytest.mark.long)],
)
def test_many_schedules_at_midnight_come_as_they_were_foretold(
    store: Store, count: int, busiest: int
) -> None:
    """To the occurrence."""
    for first in range(0, count, 1_000):
        many = [
            schedule(NOON, f"s{number}", cron="0 0 * * *", jitter_seconds=600.0)
            for number in range(first, first + 1_000)
        ]
        assert all(store.schedules.insert_many(many))
    buckets = Buckets(MIDNIGHT - MINUTE, MIDNIGHT + 6 * MINUTE, SECOND)
    made = ForecastService(store, max_seconds=300).forecast(TENANT, buckets, NOON)
    assert made.notes == []
    expansion = Expansion(store, timeframe_seconds=600)
    while expansion.expand_page(MIDNIGHT - 4 * MINUTE).full:
        continue
    rows = store.mongo.collection("events").find({}, {"due_at": 1})
    reality = Counter(buckets.of(row["due_at"]) for row in rows)
    assert reality.total() == count
    within = Counter({bucket: count for bucket, count in reality.items() if bucket is not None})
    assert Counter({cell.bucket: count for cell, count in made.cells.items()}) == within
    assert max(within.values()) <= busiest
    # Now that they are events: the same.
    assert by_bucket(store, buckets, max_seconds=300) == within


def test_it_counts_rules_events_messages_and_retries_by_receiver(store: Store) -> None:
    store.schedules.insert(schedule(NOON, "often", rrule="FREQ=MINUTELY", url="http://a.example/"))
    store.schedules.insert(schedule(NOON, "other", rrule="FREQ=HOURLY", url="http://b.example/"))
    paused = schedule(NOON, "paused", rrule="FREQ=MINUTELY").revise(NOON, state=ScheduleState.PAUSED)
    store.schedules.insert(paused)
    Expansion(store, timeframe_seconds=600).expand_page(NOON)
    for number in range(3):
        store.messages.insert(message(NOON + 20 * MINUTE, f"m{number}", url="http://c.example/"), NOON)
    store.events.insert([event(NOON - MINUTE, "often")], NOON, "made")
    made = ForecastService(store).forecast(TENANT, Buckets(NOON, NOON + HOUR, 15 * MINUTE), NOON)
    found = {(cell.receiver, cell.bucket, cell.source): count for cell, count in sorted(made.cells.items())}
    a, b, c = (f"http://{name}.example:80" for name in "abc")
    assert found == {
        (a, 0, ForecastSource.EVENTS): 10,
        (a, 0, ForecastSource.RULES): 5,
        **{(a, bucket, ForecastSource.RULES): 15 for bucket in (1, 2, 3)},
        (b, 0, ForecastSource.EVENTS): 1,
        (c, 1, ForecastSource.MESSAGES): 3,
    }
    assert (made.overdue, made.notes) == (1, [])


def test_schedules_of_one_rule_are_evaluated_together(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cron lines of different days have one rule; what counts from its start, or is moved by a jitter or by
    a blackout of its own, is evaluated by itself."""
    made = []
    for number in range(60):
        zone = ("UTC", "Europe/Zurich", "Australia/Lord_Howe")[number % 3]
        created = NOON - number * 37 * MINUTE - number * SECOND
        given: list[dict[str, Any]] = [
            {"cron": "*/5 * * * *"},
            {"cron": "0 9 * * 1-5"},
            {"cron": "30 2 * * *", "jitter_seconds": 60.0},
            {"rrule": "FREQ=HOURLY"},
        ]
        tags = ("t",) if number % 5 == 0 else ()
        made.append(schedule(created, f"s{number}", timezone=zone, tags=tags, **given[number % 4]))
    made = [replace(each, next_run_at=each.recurrence().after(NOON, inclusive=True)) for each in made]
    assert all(store.schedules.insert_many(made))
    start, end = NOON + 2 * HOUR, NOON + 3 * DAY
    set_blackout(store, Target(TENANT, Scope.TAG, "t"), "skip", end - DAY, 5)
    buckets, alone = Buckets(start, end, HOUR), Counter[int]()
    outlooks = BlackoutOutlooks(store.blackouts.everybodys(NOON), start, end)
    for each in made:
        outlook = outlooks.of(TENANT, each.id, each.tags, None)
        alone += occurrences_by_bucket(each, buckets, outlook, outlooks.begins).sent
    evaluated = []

    def counted(schedule: PlannedSchedule, *of: Any) -> Counts:
        evaluated.append(schedule.id)
        return occurrences_by_bucket(schedule, *of)

    monkeypatch.setattr(forecast, "occurrences_by_bucket", counted)
    assert by_bucket(store, buckets) == alone
    # Two rules in three zones, with the blackout and without, and the 30 others.
    assert len(evaluated) == 2 * 3 * 2 + 30


def test_one_rule_that_begins_later_takes_nothing_from_what_has_begun(store: Store) -> None:
    """The same phrase has another beginning in another week, and whichever is read first is shared."""
    for number, created in enumerate((NOON, NOON - 9 * DAY, NOON)):
        made = schedule(created, f"s{number}", phrase="every day at 9am starting next monday")
        following = made.recurrence().after(NOON, inclusive=True)
        store.schedules.insert(replace(made, next_run_at=following))
    # Tomorrow on, and from Monday on.
    assert by_bucket(store, Buckets(NOON, NOON + 14 * DAY, 14 * DAY)) == {0: 14 + 8 + 8}


def test_what_did_not_change_is_decoded_once_and_the_days_of_a_calendar_are_asked_for_each_time(
    store: Store, client: FlaskClient
) -> None:
    body = {"dates": [{"date": "2040-03-05"}], "weekend": []}
    assert client.put("/api/calendars/office", json=body).status_code == 201
    rule = {"rrule": "DTSTART:20400301T120000Z\nRRULE:FREQ=DAILY", "calendar": "office"}
    fields = {"name": "n", "callback_url": "http://127.0.0.1:9/", "on_holiday": "skip"}
    for name in ("a", "b"):
        assert client.put(f"/api/schedules/{name}", json=fields | rule).status_code == 201
    counted = {"name": "c", "callback_url": "http://127.0.0.1:9/", "rrule": f"{rule['rrule']};COUNT=5"}
    assert client.put("/api/schedules/c", json=counted).status_code == 201
    start = datetime(2040, 3, 1, tzinfo=UTC)
    buckets = Buckets(start, start + 10 * DAY, DAY)

    def counts() -> int:
        return by_bucket(store, buckets).total()

    def planned() -> dict[str, PlannedSchedule]:
        _, found = store.forecasts.planned(TENANT, most=9)
        return {each.id: each for each in found if each is not None}

    assert counts() == 9 + 9 + 5
    first, again = planned(), planned()
    assert all(first[name] is again[name] for name in "abc")
    # The days alone change; beats have not looked at the schedules yet.
    schedules = store.mongo.collection("schedules")
    documents = list(schedules.find())
    more = body | {"dates": [{"date": "2040-03-05"}, {"date": "2040-03-06"}]}
    assert client.put("/api/calendars/office", json=more).status_code == 200
    assert list(schedules.find()) == documents
    assert counts() == 8 + 8 + 5
    schedules.update_one({"_id": "a"}, {"$set": {"tags": ["t"]}})
    third = planned()
    assert (third["a"].tags, third["b"] is first["b"]) == (("t",), True)
    assert client.post("/api/schedules/b/pause").status_code == 200
    assert counts() == 8 + 5


def set_blackout(store: Store, target: Target, policy: BlackoutPolicy, begins: datetime, hours: int) -> None:
    given = {"run_at": begins}
    name = f"{target.scope.value}-{target.name}-{policy}"
    made = Blackout.of(name, target, given, hours * HOUR, policy, NOON, timezone="UTC")
    assert store.blackouts.put(made)


def test_what_blackouts_skip_is_not_counted_and_what_they_postpone_is_counted_at_their_end(
    store: Store,
) -> None:
    rule = "FREQ=HOURLY"
    store.schedules.insert(schedule(NOON, "skipped", rrule=rule, tags=("s",), url="http://a.example/"))
    store.schedules.insert(schedule(NOON, "postponed", rrule=rule, tags=("p",), url="http://b.example/"))
    store.schedules.insert(schedule(NOON, "free", rrule=rule, url="http://c.example/"))
    set_blackout(store, Target(TENANT, Scope.TAG, "s"), "skip", NOON + 2 * HOUR, 3)
    set_blackout(store, Target(TENANT, Scope.TAG, "p"), "postpone", NOON + 2 * HOUR, 3)
    # Two windows that touch end together; those of another tenant are of no callback of this one.
    set_blackout(store, Target(TENANT, Scope.SCHEDULE, "postponed"), "postpone", NOON + 5 * HOUR, 1)
    set_blackout(store, Target("acme", Scope.ALL), "skip", NOON, 9)
    made = ForecastService(store).forecast(TENANT, Buckets(NOON, NOON + 8 * HOUR, HOUR), NOON)
    counts = {
        name: [
            made.cells[Cell(bucket, f"http://{name}.example:80", ForecastSource.RULES)] for bucket in range(8)
        ]
        for name in "abc"
    }
    assert counts == {
        "a": [1, 1, 0, 0, 0, 1, 1, 1],
        "b": [1, 1, 0, 0, 0, 0, 5, 1],
        "c": [1, 1, 1, 1, 1, 1, 1, 1],
    }
    assert made.withheld == {Withheld.SKIPPED: 3, Withheld.POSTPONED: 4}
    assert made.notes == []
    # A forecast that begins within a window knows what fell due before it.
    later = ForecastService(store).forecast(TENANT, Buckets(NOON + 4 * HOUR, NOON + 8 * HOUR, HOUR), NOON)
    found = [later.cells[Cell(bucket, "http://b.example:80", ForecastSource.RULES)] for bucket in range(4)]
    assert found == [0, 0, 5, 1]


def test_a_blackout_of_a_destination_is_one_of_its_schedules(store: Store) -> None:
    named = draft(url=NOT_GIVEN, destination="erp", rrule="FREQ=HOURLY").schedule(
        "named", NOON, max_retries=1
    )
    store.schedules.insert(named)
    set_blackout(store, Target(TENANT, Scope.DESTINATION, "erp"), "skip", NOON + 2 * HOUR, 3)
    made = ForecastService(store).forecast(TENANT, Buckets(NOON, NOON + 8 * HOUR, HOUR), NOON)
    assert (made.cells.total(), made.withheld) == (5, {Withheld.SKIPPED: 3})


def test_events_and_messages_that_wait_are_moved_too(store: Store) -> None:
    store.schedules.insert(schedule(NOON, "tagged", rrule="FREQ=HOURLY;COUNT=1", tags=("t",)))
    Expansion(store, timeframe_seconds=600).expand_page(NOON)
    store.messages.insert(message(NOON + 10 * MINUTE, "m1", url="http://c.example/"), NOON)
    set_blackout(store, Target(TENANT, Scope.TAG, "t"), "skip", NOON - MINUTE, 1)
    set_blackout(store, Target(TENANT, Scope.ALL), "postpone", NOON + 5 * MINUTE, 1)
    now = NOON + 10 * SECOND
    made = ForecastService(store).forecast(TENANT, Buckets(NOON, NOON + 2 * HOUR, HOUR), now)
    assert made.cells == {Cell(1, "http://c.example:80", ForecastSource.MESSAGES): 1}
    assert made.withheld == {Withheld.SKIPPED: 1, Withheld.POSTPONED: 1}


def test_an_estimate_knows_blackouts(store: Store) -> None:
    store.schedules.insert(schedule(NOON, "often", rrule="FREQ=SECONDLY", tags=("s",)))
    set_blackout(store, Target(TENANT, Scope.TAG, "s"), "skip", NOON + 2 * HOUR, 3)
    made = ForecastService(store).forecast(TENANT, Buckets(NOON, NOON + 8 * HOUR, HOUR), NOON)
    by_bucket = [sum(made.cells[cell] for cell in made.cells if cell.bucket == each) for each in range(8)]
    assert [round(each / 3_600, 1) for each in by_bucket] == [1, 1, 0, 0, 0, 1, 1, 1]
    assert round(made.withheld[Withheld.SKIPPED] / 3_600, 1) == 3


def test_the_answer_tells_of_blackouts(client: FlaskClient, create: Create) -> None:
    create(rrule="FREQ=MINUTELY", tags=["s"])
    body = {"cron": "0 0 * * *", "duration_seconds": 72_000, "policy": "skip", "tag": "s"}
    assert client.put("/api/blackouts/day", json=body).status_code == 201
    found = client.get("/api/forecast").get_json()
    assert found["blackouts"]["skipped"] + found["count"] in (1_440, 1_441)
    assert 1_190 <= found["blackouts"]["skipped"] <= 1_201
    assert found["blackouts"]["postponed"] == 0


def test_beyond_its_bounds_it_samples_and_says_so(store: Store) -> None:
    many = [schedule(NOON, f"s{i}", rrule="FREQ=MINUTELY;COUNT=10") for i in range(40)]
    assert all(store.schedules.insert_many(many))
    buckets = Buckets(NOON, NOON + HOUR, 30 * MINUTE)
    made = ForecastService(store, max_schedules=10).forecast(TENANT, buckets, NOON)
    assert made.cells.total() == 400
    assert made.notes == ["10 of 40 active schedules, chosen by chance, stand for all of them."]
    Expansion(store, timeframe_seconds=3600).expand_page(NOON)
    later = NOON + MINUTE
    made = ForecastService(store, max_events=100).forecast(TENANT, buckets, later)
    assert made.cells.total() == 400
    assert made.notes == ["Of the events that wait, a part of each bucket stands for all of it."]


def test_long_rules_have_a_bound_together_and_none_is_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them may have 64 KiB, and thousands would be more than a process has."""
    dates = ",".join(f"{NOON + DAY * 400 + number * MINUTE:%Y%m%dT%H%M%SZ}" for number in range(100))
    rule = f"DTSTART:20260302T120000Z\nRRULE:FREQ=HOURLY;COUNT=5\nRDATE:{dates}"
    for number in range(6):
        store.schedules.insert(schedule(NOON, f"s{number}", rrule=rule))
    _, found = store.forecasts.planned(TENANT, most=9)
    assert len({id(each.rule) for each in found if each is not None}) == 6
    monkeypatch.setattr(forecasts, "A_BATCH", 2)
    monkeypatch.setattr(forecasts, "MOST_READ_BYTES", 5_000)
    made = ForecastService(store).forecast(TENANT, Buckets(NOON, NOON + DAY, DAY), NOON)
    assert made.cells.total() == 6 * 4
    assert made.notes == ["2 of 6 active schedules, chosen by chance, stand for all of them."]


def test_its_time_has_a_bound_and_it_says_what_it_had_no_time_for(store: Store) -> None:
    many = [schedule(NOON, f"s{i}", rrule="FREQ=MINUTELY;COUNT=10", jitter_seconds=1.0) for i in range(40)]
    assert all(store.schedules.insert_many(many))
    buckets = Buckets(NOON, NOON + HOUR, HOUR)
    made = ForecastService(store, max_seconds=-1).forecast(TENANT, buckets, NOON)
    assert made.cells.total() == 400
    assert made.notes == ["1 of 40 active schedules, chosen by chance, stand for all of them."]


def test_a_process_makes_one_at_a_time(client: FlaskClient) -> None:
    with forecast_route._one_at_a_time:
        answer = client.get("/api/forecast")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert client.get("/api/forecast").status_code == 200


def test_what_becomes_an_event_while_it_is_made_is_counted_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = (schedule(NOON, name, rrule="FREQ=MINUTELY;COUNT=10") for name in ("a", "b"))
    store.schedules.insert_many([a, b])
    expansion, read = Expansion(store, timeframe_seconds=600), store.forecasts.planned

    def expanded_before_and_after(*chosen: Any, **options: Any) -> Any:
        expansion.expand_these([a], NOON, NOON + HOUR)
        found = read(*chosen, **options)
        expansion.expand_these([b], NOON, NOON + HOUR)
        return found

    monkeypatch.setattr(store.forecasts, "planned", expanded_before_and_after)
    assert by_bucket(store, Buckets(NOON, NOON + HOUR, HOUR)) == {0: 20}


def test_what_cannot_be_read_harms_only_itself(store: Store) -> None:
    for name in ("a", "b"):
        store.schedules.insert(schedule(NOON, name, rrule="FREQ=MINUTELY;COUNT=10"))
    store.mongo.collection("schedules").update_one({"_id": "a"}, {"$set": {"pinned": "no rule"}})
    store.events.insert([event(NOON + MINUTE, "c"), event(NOON + MINUTE, "d")], NOON, "made")
    bent = {"due_at": [NOON + MINUTE], "origin": 5}
    store.mongo.collection("events").update_one({"schedule_id": "d"}, {"$set": bent})
    made = ForecastService(store).forecast(TENANT, Buckets(NOON, NOON + HOUR, HOUR), NOON)
    assert made.cells.total() == 11
    assert made.notes == ["1 schedules cannot be read or evaluated, and are left out."]


def test_the_route_answers_with_parts_receivers_and_sources(client: FlaskClient, create: Create) -> None:
    client.put("/api/destinations/shop", json={"url": "http://127.0.0.1:9/"})
    start = datetime(2040, 1, 1, tzinfo=UTC)
    body = {"name": "n", "destination": "shop", "rrule": "DTSTART:20400101T000000Z\nRRULE:FREQ=HOURLY"}
    assert client.post("/api/schedules", json=body).status_code == 201
    create()
    now = datetime.now(UTC)
    query = {"from": start.isoformat(), "to": (start + 2 * HOUR).isoformat(), "bucket": 3600}
    assert client.get("/api/forecast", query_string=query).status_code == 200
    shown = client.get("/api/forecast", query_string=query).get_json()
    assert [(part["from"], part["count"]) for part in shown["buckets"]] == [
        ("2040-01-01T00:00:00Z", 2),
        ("2040-01-01T01:00:00Z", 1),
    ]
    assert shown["busiest"] == shown["buckets"][0]
    assert shown["receivers"] == [
        {"destination": "shop", "count": 2, "counts": [1, 1]},
        {"origin": "http://127.0.0.1:9", "count": 1, "counts": [1, 0]},
    ]
    assert (shown["count"], shown["sampled"], shown["sources"]["rules"]) == (3, False, 3)
    empty = client.get("/api/forecast", query_string={"to": (now + HOUR).isoformat()}).get_json()
    assert (empty["count"], empty["busiest"], empty["bucket_seconds"]) == (0, None, 60)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"from": "2020-01-01T00:00:00Z"}, "from"),
        ({"to": "2020-01-01T00:00:00Z"}, "to"),
        ({"from": "2040-01-02T00:00:00Z", "to": "2040-01-01T00:00:00Z"}, "to"),
        ({"to": "9998-01-01T00:00:00Z"}, "to"),
        ({"bucket": "0"}, "bucket"),
        ({"bucket": "1"}, "bucket"),
        ({"until": "2040-01-01T00:00:00Z"}, "until"),
    ],
)
def test_a_wrong_question_is_refused_by_its_field(client: FlaskClient, query: Any, field: str) -> None:
    answer = client.get("/api/forecast", query_string=query)
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["pointer"].endswith(field)
