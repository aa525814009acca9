"""Advice for a field that does not exist: the names that people try, and which field each of them means."""

import re
from collections.abc import Collection
from difflib import get_close_matches
from typing import NamedTuple

from scheduler_app.api.wire.schedule_fields import SCHEDULE_FIELDS

_RULE = "rrule, such as FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"
_INSTANT = "run_at, an instant with an offset such as 2030-01-05T12:00:00Z"
#: Names that people try, and the advice for them: the first whose field exists.
_ADVICE: dict[str, tuple[str, ...]] = {
    "payload data message content params request_body": ("json for a JSON value, or body for text",),
    "delay delay_seconds delay_ms in after countdown": (
        "delay_seconds",
        "run_at, the instant after that delay, such as 2030-01-05T12:00:00Z",
    ),
    "at when time date datetime start start_at starts_at scheduled_at run_time execute_at eta": (_INSTANT,),
    "cron cron_expression crontab": ("cron", _RULE),
    "phrase schedule rule frequency": ("phrase", _RULE),
    "interval every every_seconds interval_seconds": (
        "every_seconds",
        "rrule, such as FREQ=SECONDLY;INTERVAL=5",
    ),
}
_MEANT = {row.aliases: (row.name,) for row in SCHEDULE_FIELDS if row.input and row.aliases} | _ADVICE
#: The pieces of advice for each name that people try.
_ADVICE_FOR = {name: advice for names, advice in _MEANT.items() for name in names.split()}
#: What answers show and no request may give: for a person who sends back everything that was read.
_SHOWN_ONLY = {row.name for row in SCHEDULE_FIELDS if not row.input} | {"message", "result"}
#: Where a capital begins the next word of a name, as in callbackUrl.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: Longer names are not looked up: comparing them costs time, and no field has one.
_LONGEST = 40


class Meant(NamedTuple):
    """What a person may have meant by an unknown field."""

    advice: str
    field: str | None = None
    """The field to use, where there is one."""


def meant(name: str, known: Collection[str]) -> Meant | None:
    """The advice for a field `name`, which is not among the `known` ones; None if nothing comes near."""
    if len(name) > _LONGEST:
        return None
    plain = _HUMP.sub("_", name).replace("-", "_").lower()
    if plain in known:
        return _use(plain)
    # Only a schedule has this field.
    of_schedule = "callback_url" in known
    if of_schedule and plain == "dry_run":
        return Meant("give it as a parameter of the query, ?dry_run=true")
    for said in _ADVICE_FOR.get(plain, ()):
        if _first_name(said) in known:
            return _use(said)
    if of_schedule and plain in _SHOWN_ONLY:
        return Meant("leave it out, the API works it out by itself")
    close = get_close_matches(plain, known, n=1, cutoff=0.8)
    return _use(close[0]) if close else None


def _use(said: str) -> Meant:
    return Meant(f"use {said}", _first_name(said))


def _first_name(said: str) -> str:
    """The field that a piece of advice begins with."""
    return said.split(",")[0].split()[0]
