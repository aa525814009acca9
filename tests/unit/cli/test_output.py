"""What people see of ids and times in a narrow terminal."""

import sys

import pytest
from click import unstyle

from scheduler_app.cli.output import show_fields, table

ID = "nightly-report-of-the-finance-department-in-zurich-0123456789abc"
EVENT = f"{ID}-12-20261121T120002Z"
TIME = "2026-11-21T12:00:02Z"


def narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)


def test_ids_and_times_stay_whole_where_words_are_folded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow_terminal(monkeypatch)
    words = "The receiver answered 503 Service Unavailable, and so did it at each of the ten attempts before."
    row = ["completed", TIME, 3, words, EVENT]
    table(["state", "run time", "attempts", "what", "event"], [row], unbroken=("state", "run time", "event"))
    lines = capsys.readouterr().out.splitlines()
    for value in ("completed", TIME, EVENT):
        assert sum(value in line for line in lines) == 1, value
    assert len(lines) > 3, "the words are folded"
    assert "receiver" in "".join(lines)


def test_what_fits_is_not_wider_than_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow_terminal(monkeypatch)
    table(["id", "name", "next run"], [["my-first", "n" * 300, TIME]], unbroken=("id", "next run"))
    assert max(map(len, unstyle(capsys.readouterr().out).splitlines())) <= 80


def test_an_ordinary_word_is_not_broken_beside_an_id_that_leaves_no_room(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow_terminal(monkeypatch)
    table(["event", "outcome"], [[EVENT, "Event successfully processed"]], unbroken=("event",))
    lines = [line.split()[-1] for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == ["Event", "successfully", "processed"]


def test_the_fields_of_one_thing_are_a_line_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow_terminal(monkeypatch)
    url = "https://example.com/" + "a" * 200
    show_fields({"id": ID, "next_run_at": TIME, "callback_url": url, "tags": ["[red]a"], "reason": None})
    assert capsys.readouterr().out.splitlines() == [
        f"id            {ID}",
        f"next_run_at   {TIME}",
        f"callback_url  {url}",
        'tags          ["[red]a"]',
        "reason        null",
    ]


def test_six_columns_with_an_id_of_a_few_words_fit_a_terminal_of_80(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of `scheduler list`."""
    narrow_terminal(monkeypatch)
    columns = ["state", "id", "name", "when", "next run", "calls"]
    row = ["paused", "monthly-report", "n" * 40, "w" * 40, TIME, "GET https://example.com/report"]
    table(columns, [row], unbroken=("state", "id", "next run"))
    lines = unstyle(capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("monthly-report" in line and TIME in line for line in lines)


def test_an_id_that_leaves_no_room_has_a_line_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of `scheduler list`, with ids as long as they may be."""
    narrow_terminal(monkeypatch)
    columns = ["state", "last run", "id", "name", "when", "next run", "calls"]
    rows = [["paused", "completed", f"{ID[:-1]}{n}", "n" * 40, "every day", TIME, "GET x"] for n in range(3)]
    table(columns, rows, unbroken=("state", "last run", "id", "next run"), key="id")
    lines = unstyle(capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[:3] == ["state", "last", "run"]
    ids = [line for line in lines if line.startswith(ID[:-1])]
    assert ids == [row[2] for row in rows]
    assert lines[1] == ids[0]
    assert all("paused" in lines[lines.index(each) + 1] for each in ids)
    assert not any("\x01" in line for line in lines)
