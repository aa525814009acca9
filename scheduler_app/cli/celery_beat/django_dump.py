"""django-celery-beat's tables, as `manage.py dumpdata django_celery_beat` writes them."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import IO, Any, Final
from zoneinfo import ZoneInfo

from scheduler_app.cli.celery_beat.entry import (
    MAX_BYTES,
    MAX_ENTRIES,
    MAX_PURPOSE,
    SOLAR,
    BeatEntry,
    FoundEntry,
)
from scheduler_app.cli.celery_beat.triggers import crontab_trigger, interval_trigger
from scheduler_app.cli.click_extensions import CannotStart
from scheduler_app.cli.entry_import import NotImportable, RefusedEntry
from scheduler_app.client import Json

_APP: Final = "django_celery_beat."
#: The column of each kind of schedule, and the table that it refers to.
_KINDS: Final = {
    "crontab": "crontabschedule",
    "interval": "intervalschedule",
    "clocked": "clockedschedule",
    "solar": "solarschedule",
}
#: The API stores no date beyond it.
_LAST_YEAR: Final = 9997
_PERIODS: Final = frozenset(("days", "hours", "minutes", "seconds", "microseconds"))
_CUT: Final = f"only the first {MAX_PURPOSE:,} characters of its description are taken over"
Tables = Mapping[str, Mapping[str, Json]]


def read_dump(file: IO[str], timezone: str, now: datetime) -> Iterator[FoundEntry]:
    """Every periodic task of a dump. `timezone` is for crontabs and times that name none. Raises
    CannotStart."""
    tables = _tables(file)
    tasks = tables.get("periodictask", {})
    if len(tasks) > MAX_ENTRIES:
        raise CannotStart(f"the dump has more than {MAX_ENTRIES:,} periodic tasks; import parts of it")
    for key, fields in tasks.items():
        name = str(fields.get("name") or f"periodic task {key}")
        try:
            yield _Row(name, fields, tables, timezone).entry(now)
        except NotImportable as refused:
            yield RefusedEntry(name, str(refused))


def _tables(file: IO[str]) -> Tables:
    text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise CannotStart(
            f"the dump is larger than {MAX_BYTES // 1024**2} MiB; dump django_celery_beat alone"
        )
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        rows = None
    if not isinstance(rows, list):
        raise CannotStart("the dump is no JSON list; make it with `manage.py dumpdata django_celery_beat`")
    tables: dict[str, dict[str, Json]] = {}
    for number, row in enumerate(rows, 1):
        model = str(row.get("model")) if isinstance(row, dict) else ""
        if isinstance(row, dict) and not model.startswith(_APP):
            continue  # a dump of a whole project has rows of other applications
        if not isinstance(row, dict) or not isinstance(row.get("fields"), dict):
            raise CannotStart(f"row {number} of the dump is not a row of a table; make a new dump")
        tables.setdefault(model.removeprefix(_APP), {})[str(row.get("pk", f"row {number}"))] = row["fields"]
    if "periodictask" not in tables:
        raise CannotStart("the dump has no django_celery_beat.periodictask; dump django_celery_beat")
    return tables


class _Row:
    """A periodic task and the tables that it refers to."""

    def __init__(self, name: str, fields: Json, tables: Tables, timezone: str) -> None:
        self._name, self._fields, self._tables, self._timezone = name, fields, tables, timezone

    def entry(self, now: datetime) -> BeatEntry:
        fields = self._fields
        enabled = fields.get("enabled") is not False
        end = self._instant("expires")
        if end is not None and end <= now:
            raise NotImportable(f"it is over since {end.isoformat()}, when it expired")
        start = self._instant("start_time")
        kind = self._kind()
        once = fields.get("one_off") is True and kind != "clocked"
        changed = self._instant("date_changed")
        if once and enabled and fields.get("total_run_count"):
            raise NotImportable("it was to run once, and has run")
        if once and changed is None and start is None:
            raise NotImportable("it is to run once, but says not from when; give it a start_time")
        purpose = str(fields.get("description") or "")
        return BeatEntry(
            name=self._name,
            key=self._name,
            task=str(fields.get("task") or ""),
            trigger=self._trigger(kind, start, end, now, once=once),
            args=self._json("args", []),
            kwargs=self._json("kwargs", {}),
            options=self._options(),
            enabled=enabled,
            once_after=(start or changed) if once else None,
            purpose=purpose,
            notes=(_CUT,) if len(purpose) > MAX_PURPOSE else (),
        )

    def _kind(self) -> str:
        given = [kind for kind in _KINDS if self._fields.get(kind) is not None]
        if len(given) != 1:
            raise NotImportable("it must have one of a crontab, an interval and a clocked time")
        return given[0]

    def _trigger(
        self, kind: str, start: datetime | None, end: datetime | None, now: datetime, *, once: bool
    ) -> Json:
        if kind == "solar":
            raise NotImportable(SOLAR)
        row = self._tables.get(_KINDS[kind], {}).get(str(self._fields[kind]))
        if row is None:
            raise NotImportable(f"its {kind} {self._fields[kind]} is not in the dump; dump all of its tables")
        if kind == "clocked":
            at = self._instant("clocked_time", row)
            if at is None:
                raise NotImportable("its clocked_time is missing")
            return {"run_at": at.isoformat()}
        if kind == "crontab":
            # A start that has passed changes nothing.
            later = start if start is not None and start > now else None
            return crontab_trigger(row, str(row.get("timezone") or self._timezone), start=later, end=end)
        counted = start or (None if once else self._instant("last_run_at") or self._instant("date_changed"))
        return interval_trigger(_period(row), start=counted, end=end)

    def _options(self) -> Json:
        names = ("queue", "exchange", "routing_key", "priority")
        options: Json = {name: self._fields.get(name) for name in names}
        return options | {
            "expires": self._fields.get("expire_seconds"),
            "headers": self._json("headers", {}),
        }

    def _json(self, name: str, default: object) -> Any:
        text = self._fields.get(name)
        if text in (None, ""):
            return default
        try:
            return json.loads(str(text))
        except (ValueError, RecursionError):
            raise NotImportable(f"its {name} are not JSON") from None

    def _instant(self, name: str, fields: Json | None = None) -> datetime | None:
        given = (self._fields if fields is None else fields).get(name)
        if given is None:
            return None
        try:
            read = datetime.fromisoformat(str(given))
        except ValueError:
            read = None
        if read is None or not 1970 <= read.year <= _LAST_YEAR:
            raise NotImportable(f"its {name} is no time from 1970 to {_LAST_YEAR}")
        return read if read.tzinfo else read.replace(tzinfo=ZoneInfo(self._timezone))


def _period(row: Json) -> timedelta:
    period, every = row.get("period"), row.get("every")
    if period not in _PERIODS or not isinstance(every, int):
        raise NotImportable(f"its interval must be a whole number of {', '.join(sorted(_PERIODS))}")
    try:
        return timedelta(**{str(period): every})
    except OverflowError:
        raise NotImportable("its interval is too long") from None
