from datetime import UTC, datetime

import pytest

from scheduler_app.actions.http import parse_retry_after

NOW = datetime(1994, 11, 6, 8, 49, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("3", 3.0),
        (" 120 ", 120.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 7.0),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 7.0),
        ("Sun Nov  6 08:49:37 1994", 7.0),
        ("Sun, 06 Nov 1994 08:49:00 GMT", 0.0),
        ("Sun, 06 Nov 1994 09:49:37 +0100", 7.0),
    ],
)
def test_seconds_and_dates_are_read(value: str, seconds: float) -> None:
    assert parse_retry_after(value, NOW) == seconds


@pytest.mark.parametrize(
    "value",
    [
        "",
        "soon",
        "-5",
        "1.5",
        "１２",
        "1e3",
        "9" * 400,
        "Sun, 99 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 99999999999 08:49:37 GMT",
        "inf",
    ],
)
def test_what_is_neither_is_ignored(value: str) -> None:
    assert parse_retry_after(value, NOW) is None
