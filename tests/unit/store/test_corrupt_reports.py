"""Documents that cannot be read are logged once, and a bounded number of them is remembered."""

import pytest
from structlog.testing import capture_logs

from scheduler_app.store import mongo
from scheduler_app.store.mongo import CorruptReports


def test_each_is_logged_once_for_a_reason() -> None:
    reports = CorruptReports("thing.corrupt", "A thing cannot be read", "thing")
    with capture_logs() as lines:
        for name, reason in (("a", "x"), ("a", "x"), ("a", "y"), ("b", "x")):
            reports.report(name, reason)
    assert [(line["event"], line["thing"], line["reason"]) for line in lines] == [
        ("thing.corrupt", "a", "x"),
        ("thing.corrupt", "a", "y"),
        ("thing.corrupt", "b", "x"),
    ]


def test_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mongo, "MOST_REMEMBERED", 2)
    reports = CorruptReports("thing.corrupt", "A thing cannot be read", "thing")
    with capture_logs() as lines:
        for name in ("a", "b", "c", "c", "a"):
            reports.report(name, "x")
            assert len(reports._reported) <= 2
    assert [line["thing"] for line in lines] == ["a", "b", "c", "a"]
