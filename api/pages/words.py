"""Times as people read them."""

from datetime import UTC, datetime

from scheduler_app.domain.local_time import local_in

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def relative(moment: datetime, now: datetime) -> str:
    """`in 5 minutes`, `2 days ago`, `now`: to the largest unit, which is enough beside the exact time. What
    lacks a sixtieth of a unit counts as whole: `in 2 hours` is not to become `in 1 hour` in a second."""
    seconds = round((moment - now).total_seconds())
    for size, unit in _UNITS:
        count = (abs(seconds) + size // 60) // size
        if count:
            amount = f"{count} {unit}{'s' if count > 1 else ''}"
            return f"in {amount}" if seconds > 0 else f"{amount} ago"
    return "now"


def instant(moment: datetime) -> str:
    """`2026-03-02 12:00:00 UTC`, with milliseconds where there are any."""
    shown = moment.astimezone(UTC)
    fraction = f".{shown.microsecond // 1000:03d}" if shown.microsecond else ""
    return f"{shown:%Y-%m-%d %H:%M:%S}{fraction} UTC"


def minute(moment: datetime) -> str:
    """`2026-03-02 12:00 UTC`, where seconds say nothing."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def in_zone(moment: datetime, zone: str) -> str:
    """`Mon 2026-03-02 13:00:00+01:00`, in an IANA zone."""
    shown = local_in(moment, zone)
    return f"{shown:%a} {shown.isoformat(sep=' ', timespec='seconds')}"


def duration(milliseconds: float) -> str:
    """`12 ms`, `1.5 s`, `10 min`, `2.5 h`."""
    if abs(milliseconds) < 1_000:
        return f"{milliseconds:.0f} ms"
    for size, unit in ((7_200_000, "h"), (120_000, "min")):
        if abs(milliseconds) >= size:
            return f"{_short(milliseconds / (3_600_000 if unit == 'h' else 60_000))} {unit}"
    return f"{_short(milliseconds / 1000)} s"


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
