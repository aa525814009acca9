"""Names that people give to fields of a schedule, and the fields that they mean."""

import re
from collections.abc import Collection
from difflib import get_close_matches

_RULE = "rrule, such as FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"
_INSTANT = "run_at, an instant with an offset such as 2030-01-05T12:00:00Z"
_DELAY = "run_at, the instant that is so much later than now, such as 2030-01-05T12:00:00Z"
_BODY = "json for a JSON value, or body for text"
_MEANT = {
    "callback_url": "url uri callback endpoint target webhook webhook_url callback_uri link address",
    _BODY: "payload data message content params request_body",
    _DELAY: "delay delay_seconds delay_ms in after countdown",
    _INSTANT: "at when time date datetime start start_at starts_at scheduled_at run_time execute_at eta",
    _RULE: "cron cron_expression crontab schedule rule recurrence interval every frequency phrase",
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
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST = 40


def meant(name: str, known: Collection[str]) -> str | None:
    """What somebody may have meant by a field that is not `known`; None where nothing comes near."""
    if len(name) > _LONGEST:
        return None
    plain = _HUMP.sub("_", name).replace("-", "_").lower()
    if plain in known:
        return plain
    field = _FIELD_OF.get(plain)
    # A table of a schedule's fields: other things have other ones.
    if field is not None and field.split(",")[0].split()[0] in known:
        return field
    return next(iter(get_close_matches(plain, known, n=1, cutoff=0.75)), None)
