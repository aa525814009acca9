"""The bar of a long command."""

import io

from scheduler_app.cli.output import ProgressBar, with_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_comes_after_a_second_and_goes_at_the_end() -> None:
    now, terminal = [0.0], Terminal()
    with ProgressBar("paused", 4_000, stream=terminal, seconds=lambda: now[0]) as progress:
        progress(100)
        assert terminal.getvalue() == ""
        now[0] = 1.5
        progress(2_000)
        assert terminal.getvalue() == f"\rpaused [{'#' * 15}{' ' * 15}] 2,000 of 4,000"
    assert terminal.getvalue().endswith("\r" + " " * 54 + "\r")


def test_without_a_total_it_counts() -> None:
    now, terminal = [0.0], Terminal()
    with ProgressBar("imported", stream=terminal, seconds=lambda: now[0]) as progress:
        now[0] = 2.0
        progress(1_000)
    assert terminal.getvalue().startswith("\rimported 1,000")


def test_no_terminal_no_bar() -> None:
    now, pipe = [0.0], io.StringIO()
    with ProgressBar("paused", 10, stream=pipe, seconds=lambda: now[0]) as progress:
        now[0] = 9.0
        progress(5)
    assert pipe.getvalue() == ""


def test_rows_are_passed_on_as_they_are() -> None:
    assert list(with_progress(iter([1, 2, 3]), "read")) == [1, 2, 3]
