"""Durations as people type them: 90s, 10m, 1h30m, 2d."""

import re
from typing import Final

import click

_SECONDS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION: Final = re.compile(r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,12})s)?", re.ASCII)
_WHOLE: Final = re.compile(r"\d{1,12}", re.ASCII)


def seconds_of(text: str) -> int:
    """The seconds of a duration: whole numbers, each with its unit (d, h, m, s), the longest unit first; a
    number alone is in seconds. Raises ValueError."""
    written = text.strip().lower()
    if _WHOLE.fullmatch(written):
        return int(written)
    found = _DURATION.fullmatch(written) if written else None
    if found is None:
        raise ValueError(f"{text!r} is not a duration; write it as 90s, 10m, 1h30m or 2d")
    amounts = zip(found.groups(), _SECONDS.values(), strict=True)
    return sum(int(number) * unit for number, unit in amounts if number)


def duration(text: str) -> int:
    """The type of an option that takes a duration: the command gets its seconds."""
    try:
        return seconds_of(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
