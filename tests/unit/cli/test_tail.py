"""Which lines of events `scheduler tail` has shown."""

import pytest

from scheduler_app.cli.commands import events
from scheduler_app.cli.commands.events import HistoryLine, ShownLines, lines_in_order
from scheduler_app.client import Event


def event(name: str, *messages: str) -> Event:
    lines = [
        {"time": f"2030-01-01T00:00:0{number}Z", "status": "running", "message": message}
        for number, message in enumerate(messages)
    ]
    return Event.of({"_id": name, "state": "running", "status": lines})


def fresh(seen: ShownLines, shown: Event) -> list[str]:
    return [line.message for line in seen.fresh(shown)]


def test_each_line_is_shown_once() -> None:
    seen = ShownLines()
    assert fresh(seen, event("a", "made")) == ["made"]
    assert fresh(seen, event("a", "made", "claimed")) == ["claimed"]
    assert fresh(seen, event("b", "made")) == ["made"]
    assert fresh(seen, event("a", "made", "claimed")) == []


def test_what_is_remembered_is_bounded_and_what_was_looked_at_last_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "TAIL_REMEMBERED", 2)
    seen = ShownLines()
    for name in ("a", "b", "a", "c"):
        fresh(seen, event(name, "made"))
    assert fresh(seen, event("a", "made")) == []
    assert fresh(seen, event("b", "made")) == ["made"]


def test_lines_come_in_the_order_of_time_and_those_of_one_event_as_they_were_written() -> None:
    lines = [
        HistoryLine("2030-01-01T00:00:01.250Z", "a", "ready_queue", "made"),
        HistoryLine("2030-01-01T00:00:02Z", "a", "worker_queue", "queued"),
        HistoryLine("2030-01-01T00:00:02Z", "a", "running", "claimed"),
        HistoryLine("2030-01-01T00:00:02.004Z", "a", "completed", "done"),
    ]
    other = HistoryLine("2030-01-01T00:00:01.999Z", "b", "ready_queue", "made")
    assert lines_in_order([*lines, other]) == [lines[0], other, *lines[1:]]
