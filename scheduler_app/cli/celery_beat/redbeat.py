"""RedBeat's keys in Redis: a sorted set names the hashes, whose field `definition` is JSON."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final
from zoneinfo import ZoneInfo

from scheduler_app.cli.celery_beat.entry import MAX_ENTRIES, SOLAR, BeatEntry, FoundEntry
from scheduler_app.cli.celery_beat.triggers import crontab_trigger, interval_trigger, seconds
from scheduler_app.cli.click_extensions import CannotStart
from scheduler_app.cli.entry_import import NotImportable, RefusedEntry
from scheduler_app.client import Json

MAX_DEFINITION_BYTES: Final = 512 * 1024
_PATIENCE: Final = 10
_PAGE: Final = 200
#: By the numbers of dateutil.
_FREQUENCIES: Final = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
_DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_LISTS: Final = (
    *("bysetpos", "bymonth", "bymonthday", "byyearday", "byweekno", "byhour", "byminute", "bysecond"),
)
_RELATIVE: Final = ("relative: it counts from its last run, and not from round times",)


def read_redbeat(url: str, prefix: str, zone: str) -> Iterator[FoundEntry]:
    """Every entry below a prefix of keys. `zone` is that of crontabs, of which RedBeat keeps none. Raises
    CannotStart."""
    try:
        from redis import Redis
        from redis.exceptions import RedisError
    except ModuleNotFoundError:
        raise CannotStart("reading RedBeat's keys needs redis: pip install redis") from None
    try:
        client = Redis.from_url(
            url,
            decode_responses=True,
            encoding_errors="replace",
            socket_timeout=_PATIENCE,
            socket_connect_timeout=_PATIENCE,
        )
    except ValueError:
        # Its own message may show a part of the password.
        raise CannotStart("--redbeat must be a URL such as redis://host:6379/0") from None
    try:
        with client:
            yield from _entries(client, prefix, zone)
    except RedisError as error:
        raise CannotStart(f"Redis did not answer as RedBeat's does: {error}") from None


def _entries(client: Any, prefix: str, zone: str) -> Iterator[FoundEntry]:
    keys = client.zrange(f"{prefix}:schedule", 0, MAX_ENTRIES)
    if not keys:
        raise CannotStart(
            f"Redis has no schedule {prefix}:schedule; give --redbeat-prefix, or another database"
        )
    if len(keys) > MAX_ENTRIES:
        raise CannotStart(f"RedBeat has more than {MAX_ENTRIES:,} entries")
    for first in range(0, len(keys), _PAGE):
        page = keys[first : first + _PAGE]
        with client.pipeline(transaction=False) as pipe:
            for key in page:
                pipe.hstrlen(key, "definition")
            sizes = pipe.execute(raise_on_error=False)
        for key, size in zip(page, sizes, strict=True):
            name = key.removeprefix(prefix)
            try:
                yield _entry(name, _definition(client, key, size), zone)
            except NotImportable as refused:
                yield RefusedEntry(name, str(refused))


def _definition(client: Any, key: str, size: object) -> Json:
    if not isinstance(size, int) or size == 0:
        raise NotImportable("its key has no definition")
    if size > MAX_DEFINITION_BYTES:
        raise NotImportable(f"its definition is larger than {MAX_DEFINITION_BYTES // 1024} KiB")
    definition, meta = client.hmget(key, "definition", "meta")
    try:
        read, ran = json.loads(definition), json.loads(meta or "{}")
    except (ValueError, TypeError, RecursionError):
        raise NotImportable("its definition is not JSON") from None
    if not isinstance(read, dict) or not isinstance(ran, dict) or not isinstance(read.get("schedule"), dict):
        raise NotImportable("its definition has no schedule")
    return {**read, "last_run_at": ran.get("last_run_at")}


def _entry(name: str, given: Json, zone: str) -> BeatEntry:
    schedule = given["schedule"]
    kind = schedule.get("__type__")
    notes: tuple[str, ...] = ()
    if kind == "crontab":
        trigger = crontab_trigger(schedule, zone)
    elif kind == "interval":
        trigger = interval_trigger(seconds(schedule.get("every")), start=_datetime(given["last_run_at"]))
        notes = _RELATIVE if schedule.get("relative") else ()
    elif kind == "rrule":
        trigger = _rrule(schedule)
    else:
        raise NotImportable(SOLAR if kind == "solar" else f"its schedule is a {kind}, which is not known")
    name = str(given.get("name") or name)
    return BeatEntry(
        name=name,
        key=name,
        task=str(given.get("task") or ""),
        trigger=trigger,
        args=given.get("args") or [],
        kwargs=given.get("kwargs") or {},
        options=_options(given.get("options")),
        enabled=given.get("enabled") is not False,
        notes=notes,
    )


def _options(given: object) -> Mapping[str, Any]:
    if given is not None and not isinstance(given, dict):
        raise NotImportable("its options are no object")
    return given or {}


def _rrule(given: Json) -> Json:
    """A rule of dateutil. Its times are those of a fixed offset, where it has one."""
    if given.get("byeaster") is not None:
        raise NotImportable("BYEASTER is not part of RFC 5545; give the days themselves by a calendar")
    try:
        parts = [f"FREQ={_FREQUENCIES[given['freq']]}"]
        if given.get("interval") not in (None, 1):
            parts.append(f"INTERVAL={int(given['interval'])}")
        if given.get("count") is not None:
            parts.append(f"COUNT={int(given['count'])}")
        if given.get("until") is not None:
            parts.append(f"UNTIL={datetime.fromtimestamp(given['until'], UTC):%Y%m%dT%H%M%SZ}")
        if given.get("wkst") is not None:
            parts.append(f"WKST={_day(given['wkst'])}")
        for name in _LISTS:
            if (values := given.get(name)) is not None:
                held = values if isinstance(values, list) else [values]
                parts.append(f"{name.upper()}={','.join(str(int(each)) for each in held)}")
        if (days := given.get("byweekday")) is not None:
            held = days if isinstance(days, list) else [days]
            parts.append(f"BYDAY={','.join(map(_day, held))}")
        rule = "RRULE:" + ";".join(parts)
        if given.get("dtstart") is None:
            return {"rrule": rule, "timezone": "UTC"}
        minutes = int(given.get("dtstart_tz") or 0)
        start = datetime.fromtimestamp(given["dtstart"], timezone(timedelta(minutes=minutes)))
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, OSError):
        raise NotImportable("its rrule is not as RedBeat writes it") from None
    if not minutes:
        return {"rrule": f"DTSTART:{start:%Y%m%dT%H%M%SZ}\n{rule}"}
    if minutes % 60:
        raise NotImportable(
            "its rrule has an offset that no zone has all year; write it as RRULE with a TZID"
        )
    # The names of these zones count to the west.
    zone = f"Etc/GMT{-minutes // 60:+d}"
    return {"rrule": f"DTSTART;TZID={zone}:{start:%Y%m%dT%H%M%S}\n{rule}", "timezone": zone}


def _day(given: object) -> str:
    """A weekday: a number, or the object of which RedBeat keeps no more than that."""
    return _DAYS[given["wkday"] if isinstance(given, dict) else int(str(given))]


def _datetime(given: object) -> datetime | None:
    """RedBeat's own form; None if it never ran."""
    if not isinstance(given, dict) or given.get("__type__") != "datetime":
        return None
    names = ("year", "month", "day", "hour", "minute", "second")
    zone = given.get("timezone", "UTC")
    try:
        offset = ZoneInfo(zone) if isinstance(zone, str) else timezone(timedelta(seconds=zone))
        year, month, day, hour, minute, second = (int(given[name]) for name in names)
        return datetime(year, month, day, hour, minute, second, tzinfo=offset).astimezone(UTC)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise NotImportable("its last_run_at is not as RedBeat writes it") from None
