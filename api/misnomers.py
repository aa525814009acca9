"""Names that people give to fields of a schedule, and what they mean by them."""

import re
from collections.abc import Collection
from difflib import get_close_matches
from typing import NamedTuple

_RULE = "rrule, such as FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"
_INTERVAL = "rrule, such as FREQ=SECONDLY;INTERVAL=5"
_INSTANT = "run_at, an instant with an offset such as 2030-01-05T12:00:00Z"
_DELAY = "run_at, the instant that is so much later than now, such as 2030-01-05T12:00:00Z"
_BODY = "json for a JSON value, or body for text"
_MEANT = {
    "callback_url": "url uri callback endpoint target webhook webhook_url callback_uri link address",
    _BODY: "payload data message content params request_body",
    _DELAY: "delay delay_seconds delay_ms in after countdown",
    _INSTANT: "at when time date datetime start start_at starts_at scheduled_at run_time execute_at eta",
    _RULE: "cron cron_expression crontab schedule rule frequency phrase",
    _INTERVAL: "interval every every_seconds interval_seconds",
    "timezone": "tz time_zone zone",
    "max_retries": "retries retry attempts max_attempts retry_count",
    "retry_backoff_seconds": "backoff retry_delay retry_backoff",
    "timeout_seconds": "timeout timeout_ms",
    "method": "http_method verb",
    "headers": "header http_headers",
    "tags": "tag labels label",
    "name": "title description",
    "signing": "sign signed secret signing_secret",
    "state": "status enabled disabled active paused",
}
_FIELD_OF = {name: field for field, names in _MEANT.items() for name in names.split()}
#: What answers show and the API works out by itself: for who sends back all that was read.
_SHOWN_ONLY = frozenset(
    (
        *("recurrence", "dtstart", "next_run_at", "next_run", "last_run", "version", "revision", "warnings"),
        *("created_at", "updated_at", "signing_since", "signing_overlap_until", "message", "result"),
    )
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST = 40


class Meant(NamedTuple):
    """What somebody may have meant by an unknown field."""

    advice: str
    field: str | None = None
    """The field to use, where there is one."""


def meant(name: str, known: Collection[str]) -> Meant | None:
    """What somebody may have meant by a field that is not `known`; None where nothing comes near."""
    if len(name) > _LONGEST:
        return None
    plain = _HUMP.sub("_", name).replace("-", "_").lower()
    if plain in known:
        return _use(plain)
    # A table of a schedule's fields: other things have other ones.
    if "callback_url" in known and plain == "dry_run":
        return Meant("give it as a parameter of the query, ?dry_run=true")
    if "callback_url" in known and plain in _SHOWN_ONLY:
        return Meant("leave it out, the API works it out by itself")
    said = _FIELD_OF.get(plain)
    if said is not None and said.split(",")[0].split()[0] in known:
        return _use(said)
    close = get_close_matches(plain, known, n=1, cutoff=0.8)
    return _use(close[0]) if close else None


def _use(said: str) -> Meant:
    return Meant(f"use {said}", said.split(",")[0].split()[0])
