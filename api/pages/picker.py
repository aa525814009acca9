"""The picker of the editor: what was picked, as the text of the field "When"."""

from datetime import time

from marshmallow import fields, validate

from scheduler_app.api.json_types import Loaded
from scheduler_app.api.wire.field_types import BoundedList
from scheduler_app.api.wire.schedule_fields.field import AnyField

KINDS = ("daily", "weekly", "monthly", "monthly_weekday", "yearly", "interval", "working_hours")
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_MOST = {"pick_interval": (1, 1_000), "pick_minutes": (1, 10_080), "pick_day": (-31, 31),
         "pick_month": (1, 12), "pick_which": (-5, 5)}  # fmt: skip

FIELDS: dict[str, AnyField] = {
    "pick_kind": fields.String(validate=validate.OneOf(KINDS)),
    "pick_days": BoundedList(fields.String(validate=validate.OneOf(DAYS)), validate=validate.Length(max=7)),
    **{name: fields.String(validate=validate.Length(max=20)) for name in (*_MOST, "pick_time", "pick_until")},
}


class NotPicked(Exception):
    """The choices make no rule; the message says what to change."""


def picked(form: Loaded) -> str:
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
        parts["BYDAY"] = ",".join(day for day in DAYS if day in days)
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
