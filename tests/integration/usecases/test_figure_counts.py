"""Attempts are counted in memory and added up in MongoDB, by minute and hour, destination and tag."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from scheduler_app.domain.figures import HOUR, KEPT, MINUTE, FigureSubject
from scheduler_app.domain.http_action import destination_key
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.states import State
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.store.faults import Unavailable
from scheduler_app.usecases import figure_counts
from scheduler_app.usecases.figure_counts import FigureCounts
from scheduler_app.usecases.questions.timed_figures import FigureQuestions
from scheduler_app.worker.reports import Reports
from tests.builders import event
from tests.integration.conftest import NOON

ALL = FigureSubject(TENANT)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)


def attempt(
    at: datetime,
    state: State = State.COMPLETED,
    *,
    event_id: str = "s1-1-x",
    origin: str = "http://a.example:80",
    tags: Sequence[str] = (),
    lag: float = 3.0,
    took: float = 30.0,
) -> OutcomeRecord:
    said = {"number": 1, "lag_ms": lag, "duration_ms": took}
    return OutcomeRecord(event_id, "t", state, "", None, said, at, origin=origin, tags=tags)


def read(store: Store, subject: FigureSubject = ALL, width: timedelta = MINUTE, **span: Any) -> list[Any]:
    start, end = span.get("start", NOON - HOUR), span.get("end", NOON + HOUR)
    found = FigureQuestions(store).of(subject, start, end, width, NOON)
    return [(part.at, dict(part.outcomes)) for part in found.parts if part.outcomes]


def test_attempts_are_counted_for_the_installation_each_destination_and_each_tag(store: Store) -> None:
    counts = FigureCounts(store.figure_counters)
    erp, shop = destination_key("erp"), "http://a.example:80"
    counts.note(
        [
            attempt(NOON, origin=erp, tags=("t", "u")),
            attempt(NOON + SECOND, State.RETRYING, origin=erp, tags=("t",)),
            attempt(NOON + 61 * SECOND, State.ERROR, origin=shop),
            attempt(NOON, event_id="acme:s1-1-x", origin=destination_key("acme:erp"), tags=("t",)),
        ]
    )
    counts.write()
    assert len(counts) == 0
    whole = {"completed": 1, "retrying": 1}
    assert read(store) == [(NOON, whole), (NOON + MINUTE, {"error": 1})]
    assert read(store, width=HOUR) == [(NOON, whole | {"error": 1})]
    assert read(store, FigureSubject(TENANT, "destination", "erp")) == [(NOON, whole)]
    assert read(store, FigureSubject(TENANT, "tag", "t"), HOUR) == [(NOON, whole)]
    assert read(store, FigureSubject(TENANT, "tag", "u"), HOUR) == [(NOON, {"completed": 1})]
    assert read(store, FigureSubject("acme", "destination", "erp")) == [(NOON, {"completed": 1})]
    # There may be thousands of tags: they have hours alone.
    assert read(store, FigureSubject(TENANT, "tag", "t")) == []
    rows = list(store.mongo.collection("figures").find({}))
    assert {row["tenant"] for row in rows} == {TENANT, "acme"}
    assert {row["expires_at"] - row["at"] for row in rows} == set(KEPT.values())


def test_what_two_workers_count_at_different_times_adds_up(store: Store) -> None:
    for lag, took in ((1.0, 10.0), (40.0, 900.0)):
        counts = FigureCounts(store.figure_counters)
        counts.note([attempt(NOON, lag=lag, took=took)])
        counts.write()
        counts.note([attempt(NOON + SECOND, lag=lag, took=took)])
        counts.write()
        counts.write(at_once=True)
    (part,) = [
        part
        for part in FigureQuestions(store).of(ALL, NOON - HOUR, NOON + HOUR, MINUTE, NOON).parts
        if part.outcomes
    ]
    assert part.outcomes == {"completed": 4}
    assert (part.lag.count, part.lag.total, part.lag.most) == (4, 82.0, 40.0)
    assert (part.duration.quantile(0.5), part.duration.quantile(0.99)) == (10.0, 900.0)


def test_figures_that_cannot_be_written_are_kept_and_those_that_never_can_are_dropped(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = FigureCounts(store.figure_counters)
    counts.note([attempt(NOON)])
    add = store.figure_counters.add
    for error, left in ((Unavailable("away"), True), (ValueError("bent"), False)):

        def refuse(counted: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(store.figure_counters, "add", refuse)
        if left:
            with pytest.raises(STORE_FAULTS):
                counts.write(at_once=True)
            counts.note([attempt(NOON)])
            monkeypatch.setattr(store.figure_counters, "add", add)
            counts.write(at_once=True)
            counts.write(at_once=True)
            assert read(store) == [(NOON, {"completed": 2})]
            counts.note([attempt(NOON)])
        else:
            counts.write(at_once=True)
            assert len(counts) == 0


def test_what_is_counted_apart_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure_counts, "MAX_KEYS", 5)
    counts = FigureCounts(store.figure_counters)
    counts.note([attempt(NOON, tags=(f"t{number}",)) for number in range(50)])
    monkeypatch.setattr(figure_counts, "WRITTEN_AT_ONCE", 2)
    counts.write()
    # All are counted for the installation, however many tags there are.
    assert read(store) == [(NOON, {"completed": 50})]
    assert read(store, FigureSubject(TENANT, "tag", "t4"), HOUR) == [(NOON, {"completed": 1})]
    assert read(store, FigureSubject(TENANT, "tag", "t5"), HOUR) == []


def test_a_tenant_has_so_many_tags_counted_in_an_hour_and_others_have_theirs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure_counts, "TAGS_AN_HOUR", 3)
    counts = FigureCounts(store.figure_counters)

    def tags(tenant: str, at: datetime) -> set[str]:
        rows = store.mongo.collection("figures").find({"tenant": tenant, "at": at, "seconds": 3_600})
        return {name for row in rows if (name := row["subject"]).startswith("tag/")}

    orders = [attempt(NOON + number * SECOND, tags=(f"order:{number}", "t")) for number in range(20)]
    counts.note([*orders, attempt(NOON, event_id="acme:s1-1-x", tags=("u",))])
    counts.write(at_once=True)
    # Also what is written later within the hour.
    counts.note([attempt(NOON + MINUTE, tags=("v", "t")), attempt(NOON + HOUR, tags=("v",))])
    counts.write(at_once=True)
    assert tags(TENANT, NOON) == {"tag/order:0", "tag/t", "tag/order:1"}
    assert tags("acme", NOON) == {"tag/u"}
    assert tags(TENANT, NOON + HOUR) == {"tag/v"}
    assert read(store, FigureSubject(TENANT, "tag", "t"), HOUR) == [(NOON, {"completed": 21})]
    assert read(store) == [(NOON, {"completed": 20}), (NOON + MINUTE, {"completed": 1})]


def test_attempts_that_wait_to_be_added_up_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure_counts, "MAX_ROWS", 3)
    counts = FigureCounts(store.figure_counters)
    counts.note([attempt(NOON)] * 2)
    counts.note([attempt(NOON)] * 2)
    assert len(counts) == 3
    with capture_logs() as lines:
        counts.write()
    assert read(store) == [(NOON, {"completed": 3})]
    assert [(line["event"], line["count"]) for line in lines] == [("figures.dropped", 1)]


def test_a_worker_reports_its_attempts_and_writes_the_last_ones_when_it_ends(store: Store) -> None:
    reports = Reports(store, now=lambda: NOON)
    reports.start()
    done = attempt(NOON, tags=("t",))._replace(event=event(NOON))
    running = attempt(NOON, State.RUNNING)
    reports.note([done, running])
    reports.stop()
    reports.join()
    assert read(store) == [(NOON, {"completed": 1})]
