"""Durations as people type them."""

import pytest

from scheduler_app.cli.options import seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("10m", 600),
        ("1h30m", 5_400),
        ("2d", 172_800),
        ("1d2h3m4s", 93_784),
        ("45", 45),
        (" 5M ", 300),
    ],
)
def test_a_duration_is_read_in_seconds(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "1.5h", "30m1h", "m", "-5m", "5 m", "1w", "9" * 40 + "s", "٥m"])
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="write it as 90s, 10m, 1h30m or 2d"):
        seconds_of(text)
