"""The field "When": the trigger kind of its text, the text of a trigger, and the picker that writes it."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, time

from marshmallow import validate

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.field_types import BoundedList
from scheduler_app.api.wire.resource_fields import AnyField

_CRON_MINUTES = re.compile(r"[0-9*,/?-]+")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d.*", re.ASCII)
_RULE = re.compile(r"\b(FREQ\s*=|RRULE|DTSTART|RDATE)", re.IGNORECASE)
#: The fields of the API that are no text, by their names: `every_seconds: 900`.
_NAMED = re.compile(r"(every_seconds|delay_seconds)\s*[:=]\s*([0-9]{1,12})", re.ASCII)
ON_DEMAND = "on demand"


def trigger_fields(text: str) -> View:
    """The text as the field of the API that takes it: an RRULE, cron, an instant, a named one, or else a
    phrase."""
    words = text.split()
    if _RULE.search(text):
        # A form sends lines as browsers end them.
        return {"rrule": "\n".join(line.strip() for line in text.splitlines() if line.strip())}
    if named := _NAMED.fullmatch(text.strip()):
        return {named[1]: int(named[2])}
    if [word.lower() for word in words] == ON_DEMAND.split():
        return {"on_demand": True}
    if text.startswith("@"):
        return {"cron": text.strip()}
    if len(words) in (5, 6, 7) and all(_CRON_MINUTES.fullmatch(word) for word in words[:2]):
        return {"cron": text.strip()}
    if len(words) <= 2 and _INSTANT.fullmatch(text.strip()):
        return {"run_at": text.strip()}
    return {"phrase": text.strip()}


def when_text(written: Mapping[str, object]) -> str:
    """The text that `trigger_fields` reads as these fields, as far as it can say them."""
    for name in ("rrule", "cron", "phrase", "run_at"):
        if name in written:
            return str(written[name])
    for name in ("every_seconds", "delay_seconds"):
        if name in written:
            return f"{name}: {written[name]}"
    return ON_DEMAND if written.get("on_demand") else ""


PICKER_KINDS = ("daily", "weekly", "monthly", "monthly_weekday", "yearly", "interval", "working_hours")
PICKER_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_MOST = {"pick_interval": (1, 1_000), "pick_minutes": (1, 10_080), "pick_day": (-31, 31),
         "pick_month": (1, 12), "pick_which": (-5, 5)}  # fmt: skip

PICKER_FIELDS: dict[str, AnyField] = {
    "pick_kind": fields.String(validate=validate.OneOf(PICKER_KINDS)),
    "pick_days": BoundedList(
        fields.String(validate=validate.OneOf(PICKER_DAYS)), validate=validate.Length(max=7)
    ),
    **{name: fields.String(validate=validate.Length(max=20)) for name in (*_MOST, "pick_time", "pick_until")},
}


class NotPicked(Exception):
    """The choices make no rule; the message says what to change."""


def picked_recurrence(form: Loaded) -> str:
    """The RRULE, or the interval, that was picked. Raises NotPicked."""
    kind = form.get("pick_kind", "daily")
    if kind == "interval":
        return f"every_seconds: {_whole(form, 'pick_minutes', 30) * 60}"
    at, days = _time(form, "pick_time", "09:00"), form.get("pick_days") or []
    parts = {"FREQ": {"daily": "DAILY", "yearly": "YEARLY"}.get(kind, "MONTHLY")}
    if kind in ("weekly", "working_hours"):
        parts["FREQ"] = "WEEKLY"
    if (interval := _whole(form, "pick_interval", 1)) > 1:
        parts["INTERVAL"] = str(interval)
    if kind == "yearly":
        parts["BYMONTH"] = str(_whole(form, "pick_month", 1))
    if kind in ("monthly", "yearly"):
        parts["BYMONTHDAY"] = str(_position(form, "pick_day"))
    elif kind != "daily":
        if not days:
            raise NotPicked("Choose at least one weekday.")
        parts["BYDAY"] = ",".join(day for day in PICKER_DAYS if day in days)
    if kind == "monthly_weekday":
        parts["BYSETPOS"] = str(_position(form, "pick_which"))
    hours, minutes = [at.hour], [at.minute]
    if kind == "working_hours":
        hours, minutes = _working_hours(form, at)
    times = {"BYHOUR": hours, "BYMINUTE": minutes, "BYSECOND": [0]}
    parts |= {name: ",".join(map(str, values)) for name, values in times.items()}
    return ";".join(f"{name}={value}" for name, value in parts.items())


def _working_hours(form: Loaded, at: time) -> tuple[list[int], list[int]]:
    until, apart = _time(form, "pick_until", "17:00"), _whole(form, "pick_minutes", 30)
    if until <= at:
        raise NotPicked("“Until” must be later in the day than “At”.")
    if at.minute or until.minute:
        raise NotPicked("Working hours begin and end at full hours; write other ones as a phrase.")
    if apart > 60 or 60 % apart:
        raise NotPicked("“Minutes apart” must divide an hour: 5, 10, 15, 20, 30 or 60.")
    return list(range(at.hour, until.hour)), list(range(0, 60, apart))


def _whole(form: Loaded, name: str, otherwise: int) -> int:
    text = form.get(name) or str(otherwise)
    least, most = _MOST[name]
    label = name.removeprefix("pick_")
    try:
        number = int(text)
    except ValueError:
        raise NotPicked(f"“{label}” must be a whole number.") from None
    if not least <= number <= most:
        raise NotPicked(f"“{label}” must be between {least} and {most}.")
    return number


def _position(form: Loaded, name: str) -> int:
    found = _whole(form, name, 1)
    if found == 0:
        raise NotPicked("Count from 1, or from -1 for the last.")
    return found


def _time(form: Loaded, name: str, otherwise: str) -> time:
    try:
        return time.fromisoformat(form.get(name) or otherwise).replace(second=0, microsecond=0)
    except ValueError:
        raise NotPicked("Give a time as 09:00.") from None


#: The occurrences that are compared to tell whether the picker would write the same rule.
COMPARED_OCCURRENCES = 20
_TIMES = {"BYHOUR", "BYMINUTE", "BYSECOND"}
_MINUTES = {"SECONDLY": 1 / 60, "MINUTELY": 1, "HOURLY": 60}

Fields = dict[str, str | list[str]]


def picker_fields(recurrence: str, occurrences: Sequence[Mapping[str, object]]) -> Fields | None:
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
        picked_recurrence(fields)
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
        return _working_hours_fields(parts, hours, minutes)
    days = _days(parts, first)
    return days and days | {"pick_time": f"{hours[0]:02}:{minutes[0]:02}"}


def _days(parts: Mapping[str, str], first: datetime) -> Fields | None:
    which = {name: text for name, text in parts.items() if name not in _TIMES | {"WKST"}}
    match which:
        case {"FREQ": "DAILY", **rest} if not rest:
            return {"pick_kind": "daily"}
        case {"FREQ": "WEEKLY", **rest} if rest.keys() <= {"BYDAY"}:
            return {
                "pick_kind": "weekly",
                "pick_days": _named(rest.get("BYDAY", PICKER_DAYS[first.weekday()])),
            }
        case {"FREQ": "DAILY", "BYDAY": days, **rest} if not rest:
            return {"pick_kind": "weekly", "pick_days": _named(days)}
        case {"FREQ": "MONTHLY", "BYMONTHDAY": day, **rest} if not rest:
            return {"pick_kind": "monthly", "pick_day": day}
        case {"FREQ": "MONTHLY", "BYDAY": days, "BYSETPOS": which_one, **rest} if not rest:
            return {"pick_kind": "monthly_weekday", "pick_days": _named(days), "pick_which": which_one}
        case {"FREQ": "MONTHLY", "BYDAY": day, **rest} if not rest and day[-2:] in PICKER_DAYS and day[:-2]:
            return {"pick_kind": "monthly_weekday", "pick_days": [day[-2:]], "pick_which": day[:-2]}
        case {"FREQ": "YEARLY", "BYMONTH": month, "BYMONTHDAY": day, **rest} if not rest:
            return {"pick_kind": "yearly", "pick_month": month, "pick_day": day}
    return None


def _working_hours_fields(parts: Mapping[str, str], hours: list[int], minutes: list[int]) -> Fields | None:
    if parts.keys() - _TIMES - {"FREQ", "BYDAY", "WKST"} or max(hours) == 23:
        return None
    return {
        "pick_kind": "working_hours",
        "pick_days": _named(parts.get("BYDAY", ",".join(PICKER_DAYS))),
        "pick_time": f"{min(hours):02}:00",
        "pick_until": f"{max(hours) + 1:02}:00",
        "pick_minutes": str(60 // len(minutes)),
    }


def _numbers(text: str | None, otherwise: int) -> list[int]:
    return [int(each) for each in text.split(",")] if text else [otherwise]


def _named(text: str) -> list[str]:
    return text.split(",")
