"""Which receivers cannot keep up, by what workers report."""

from datetime import UTC, datetime
from typing import Any

from scheduler_app.health import Status
from scheduler_app.health.processes import check_receivers
from scheduler_app.store.processes import OriginLoad, ProcessRecord

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def worker(name: str, *origins: OriginLoad, **facts: Any) -> ProcessRecord:
    return ProcessRecord(name, "worker", NOON, 2.0, name=name, origins=origins, **facts)


def load(origin: str, **facts: Any) -> OriginLoad:
    return OriginLoad(origin, 0, 0, 0, 0.0)._replace(**facts)


def test_a_receiver_that_hangs_is_named_with_what_all_workers_have_of_it() -> None:
    first = worker("w1", load("http://a:80", in_flight=200, postponed=40), load("http://b:80", waiting=3))
    second = worker("w2", load("http://a:80", in_flight=200, waiting=10, full_seconds=60.0))
    check = check_receivers([first, second])
    assert check.status is Status.NOTE
    assert check.found == "http://a:80 has 400 requests in flight, 10 waiting and 40 postponed"
    assert check.facts["origins"] == ["http://a:80"]


def test_a_burst_that_fills_a_receiver_for_a_moment_is_no_news() -> None:
    check = check_receivers([worker("w1", load("http://a:80", in_flight=200, waiting=5, full_seconds=1.0))])
    assert check.status is Status.OK


def test_of_many_receivers_a_few_are_named_and_the_rest_counted() -> None:
    many = [load(f"http://h{number}:80", postponed=number + 1) for number in range(30)]
    check = check_receivers([worker("w1", *many)])
    assert check.found.startswith("http://h29:80 has")
    assert check.found.endswith("25 more are at their limit")


def test_a_worker_that_is_nearly_full_is_named() -> None:
    check = check_receivers([worker("w1", events=9_000, events_limit=10_000), worker("w2")])
    assert (check.status, "w1" in check.found, "w2" in check.found) == (Status.NOTE, True, False)
