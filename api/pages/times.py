"""The one way in which pages show a time: `Mon 23 Nov 06:00`, in the zone of whoever looks.

The zone is that of the browser, which a script tells by a cookie, or the one that a person has chosen;
without either it is UTC. What is shown in another zone, such as a schedule's own, has its offset where that
differs. UTC stands beside every time, for those who rest a pointer on it.
"""

from datetime import UTC, datetime

from flask import g, request

from scheduler_app.api.pages.access import cookie
from scheduler_app.api.services import services
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence.zones import instant_at, local_in, timezone_named

#: Cookies: with the zone that a person has chosen, and with the browser's own, which the pages' script sets.
CHOSEN_ZONE, BROWSER_ZONE = "scheduler_chosen_zone", "scheduler_zone"
_LONGEST_NAME = 64
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def viewer_zone() -> str:
    """The zone of whoever looks at the page."""
    zone: str | None = g.get("viewer_zone")
    if zone is None:
        told = (cookie(CHOSEN_ZONE), request.cookies.get(BROWSER_ZONE))
        g.viewer_zone = zone = next((each for each in told if each and is_zone(each)), "UTC")
    return zone


def is_zone(name: str) -> bool:
    try:
        return len(name) <= _LONGEST_NAME and timezone_named(name) is not None
    except InvalidField:
        return False


def from_viewer(moment: datetime) -> datetime:
    """A time that a person wrote; without an offset it is in the viewer's zone."""
    return moment if moment.tzinfo else instant_at(moment, viewer_zone())


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


def written(moment: datetime, now: datetime, *, seconds: bool = False) -> str:
    """`Mon 2 Mar 12:00`, with its year if that is not this one; with its seconds where they count."""
    year = f" {moment.year}" if moment.year != now.year else ""
    fraction = f".{moment.microsecond // 1000:03d}" if moment.microsecond else ""
    second = f":{moment.second:02d}{fraction}" if seconds and (moment.second or fraction) else ""
    # A list shows a thousand times: strftime would take most of the page's.
    day = f"{_DAYS[moment.weekday()]} {moment.day} {_MONTHS[moment.month - 1]}{year}"
    return f"{day} {moment.hour:02d}:{moment.minute:02d}{second}"


def instant(moment: datetime) -> str:
    return written(local_in(moment, viewer_zone()), services().now())


def precise(moment: datetime) -> str:
    """The same with its seconds: within a run, and of what may recur within a minute."""
    return written(local_in(moment, viewer_zone()), services().now(), seconds=True)


def short(moment: datetime) -> str:
    """`12:00` of today, `Mon 2 Mar 12:00` of another day."""
    local, now = local_in(moment, viewer_zone()), local_in(services().now(), viewer_zone())
    return f"{local:%H:%M}" if local.date() == now.date() else written(local, now)


def clock_time(moment: datetime) -> str:
    """`12:00:00.005`, where the day stands beside it."""
    local = local_in(moment, viewer_zone())
    return f"{local:%H:%M:%S}" + (f".{local.microsecond // 1000:03d}" if local.microsecond else "")


def in_zone(moment: datetime, zone: str) -> str:
    return _with_offset(local_in(moment, zone))


def local_time(text: str) -> str:
    """Of a local time with its offset, as the API's answers have it."""
    return _with_offset(datetime.fromisoformat(text))


def _with_offset(moment: datetime) -> str:
    shown = written(moment, services().now(), seconds=True)
    if moment.utcoffset() == local_in(moment.astimezone(UTC), viewer_zone()).utcoffset():
        return shown
    return f"{shown} {moment.isoformat()[-6:] if moment.utcoffset() else 'UTC'}"


def beside(moment: datetime, zone: str = "") -> str:
    """What stands beside a time: it in UTC, and in a schedule's own zone where that has another offset."""
    shown = f"{precise(moment)} · {moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    if zone and local_in(moment, zone).utcoffset() != local_in(moment, viewer_zone()).utcoffset():
        shown += f" · {written(local_in(moment, zone), moment, seconds=True)} {zone}"
    return shown


#: What templates call by these names.
TIME_FILTERS = (relative, instant, short, precise, clock_time, in_zone, local_time, beside)
