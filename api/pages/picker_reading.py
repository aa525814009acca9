"""What the picker of the editor shows of a rule that was written in another way."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from scheduler_app.api.pages.picker import DAYS, NotPicked, picked

#: The occurrences that are compared to tell whether the picker would write the same rule.
COMPARED = 20
_TIMES = {"BYHOUR", "BYMINUTE", "BYSECOND"}
_MINUTES = {"SECONDLY": 1 / 60, "MINUTELY": 1, "HOURLY": 60}

Fields = dict[str, str | list[str]]


def read_back(recurrence: str, occurrences: Sequence[Mapping[str, object]]) -> Fields | None:
    """The picker's fields that write a rule like this one, by its pinned text and its next occurrences as a
    preview shows them; None if it has none. The caller compares the occurrences of both before it shows
    them."""
    lines = [line for line in recurrence.splitlines() if not line.startswith("DTSTART")]
    if len(lines) != 1 or not lines[0].startswith("RRULE:"):
        return None
    parts = dict(part.split("=", 1) for part in lines[0].removeprefix("RRULE:").split(";"))
    interval = parts.pop("INTERVAL", "1")
    found = _interval(parts, interval) or _at_times(parts, occurrences)
    if found is None:
        return None
    fields: Fields = {"pick_interval": interval, **found}
    try:
        picked(fields)
    except NotPicked:
        return None
    return fields


def _interval(parts: Mapping[str, str], interval: str) -> Fields | None:
    minutes = int(interval) * _MINUTES.get(parts["FREQ"], 0)
    if len(parts) > 1 or not minutes or minutes % 1:
        return None
    return {"pick_kind": "interval", "pick_minutes": str(int(minutes)), "pick_interval": "1"}


def _at_times(parts: Mapping[str, str], occurrences: Sequence[Mapping[str, object]]) -> Fields | None:
    """Of a rule for days, with one time or those of working hours."""
    if not occurrences:
        return None
    first = datetime.fromisoformat(str(occurrences[0]["local"]))
    hours = _numbers(parts.get("BYHOUR"), first.hour)
    minutes = _numbers(parts.get("BYMINUTE"), first.minute)
    if len(hours) * len(minutes) > 1:
        return _working_hours(parts, hours, minutes)
    days = _days(parts, first)
    return days and days | {"pick_time": f"{hours[0]:02}:{minutes[0]:02}"}


def _days(parts: Mapping[str, str], first: datetime) -> Fields | None:
    which = {name: text for name, text in parts.items() if name not in _TIMES | {"WKST"}}
    match which:
        case {"FREQ": "DAILY", **rest} if not rest:
            return {"pick_kind": "daily"}
        case {"FREQ": "WEEKLY", **rest} if rest.keys() <= {"BYDAY"}:
            return {"pick_kind": "weekly", "pick_days": _named(rest.get("BYDAY", DAYS[first.weekday()]))}
        case {"FREQ": "DAILY", "BYDAY": days, **rest} if not rest:
            return {"pick_kind": "weekly", "pick_days": _named(days)}
        case {"FREQ": "MONTHLY", "BYMONTHDAY": day, **rest} if not rest:
            return {"pick_kind": "monthly", "pick_day": day}
        case {"FREQ": "MONTHLY", "BYDAY": days, "BYSETPOS": which_one, **rest} if not rest:
            return {"pick_kind": "monthly_weekday", "pick_days": _named(days), "pick_which": which_one}
        case {"FREQ": "MONTHLY", "BYDAY": day, **rest} if not rest and day[-2:] in DAYS and day[:-2]:
            return {"pick_kind": "monthly_weekday", "pick_days": [day[-2:]], "pick_which": day[:-2]}
        case {"FREQ": "YEARLY", "BYMONTH": month, "BYMONTHDAY": day, **rest} if not rest:
            return {"pick_kind": "yearly", "pick_month": month, "pick_day": day}
    return None


def _working_hours(parts: Mapping[str, str], hours: list[int], minutes: list[int]) -> Fields | None:
    if parts.keys() - _TIMES - {"FREQ", "BYDAY", "WKST"} or max(hours) == 23:
        return None
    return {
        "pick_kind": "working_hours",
        "pick_days": _named(parts.get("BYDAY", ",".join(DAYS))),
        "pick_time": f"{min(hours):02}:00",
        "pick_until": f"{max(hours) + 1:02}:00",
        "pick_minutes": str(60 // len(minutes)),
    }


def _numbers(text: str | None, otherwise: int) -> list[int]:
    return [int(each) for each in text.split(",")] if text else [otherwise]


def _named(text: str) -> list[str]:
    return text.split(",")
