"""The one log, its lines and its waits."""

import io

import pytest

from scheduler_app.cli.up.supervisor import Console
from scheduler_app.cli.up.supervisor.process import MAX_LINE_BYTES, LineBuffer
from scheduler_app.cli.up.supervisor.supervisor import Backoff


class _Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_each_part_has_its_colour_and_the_line_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = _Terminal()
    console = Console(["api", "worker1"], terminal)
    console.lines("api", [b"a line"])
    console.lines("worker1", [b"another"])
    first, second = terminal.getvalue().splitlines()
    assert first.endswith(b"api     |\x1b[0m a line")
    assert second.endswith(b"worker1 |\x1b[0m another")
    assert first[:5] != second[:5]


def test_no_color_and_a_pipe_have_plain_prefixes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    for stream in (_Terminal(), io.BytesIO()):
        Console(["api", "worker1"], stream).lines("api", [b"one", b"two"])
        assert stream.getvalue() == b"api     | one\napi     | two\n"


def test_a_line_that_comes_in_pieces_is_one_line() -> None:
    lines = LineBuffer()
    assert lines.feed(b"one\ntw") == [b"one"]
    assert lines.feed(b"o") == []
    assert lines.feed(b"\r\n\nthree") == [b"two", b""]
    assert lines.rest() == [b"three"]
    assert lines.rest() == []


def test_a_line_without_an_end_does_not_fill_the_memory() -> None:
    lines = LineBuffer()
    assert lines.feed(b"x" * MAX_LINE_BYTES) == []
    assert lines.feed(b"x") == [b"x" * (MAX_LINE_BYTES + 1)]
    assert lines.rest() == []


def test_the_wait_doubles_from_one_second_to_thirty() -> None:
    backoff = Backoff()
    assert [backoff.after(lived=0.5) for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]


def test_a_minute_of_health_forgets_earlier_deaths() -> None:
    backoff = Backoff()
    assert [backoff.after(lived=1), backoff.after(lived=59.9), backoff.after(lived=60)] == [1, 2, 1]
