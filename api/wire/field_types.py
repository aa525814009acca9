"""Types of values on the wire: ids and names in paths, and JSON fields that marshmallow does not have.

This is the door: what a request calls by a name has a whole id inside, of the request's tenant, and
addresses have the names again. A word that a route has in an id's place is never an id. marshmallow gives no
types to what its fields read, write and take as options: those are Any here.
"""

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from flask import Flask
from marshmallow import ValidationError, validate
from marshmallow.fields import AwareDateTime
from werkzeug.routing import BaseConverter, Map

from scheduler_app import json_fields as fields
from scheduler_app.api.services import tenant
from scheduler_app.domain.action import MAX_QUEUE
from scheduler_app.domain.action import NAME as QUEUE_NAME
from scheduler_app.domain.ids import (
    MAX_MESSAGE_ID,
    WholeId,
    message_event_id,
    message_id_of,
    name_of,
    whole_id,
)
from scheduler_app.domain.instants import shown_time, whole_milliseconds
from scheduler_app.domain.masking import control_in
from scheduler_app.domain.retry import Codes
from scheduler_app.store.paging import Position

SCHEDULE_WORDS = ("bulk", "export", "import", "preview")
EVENT_WORDS = ("redrive",)
MESSAGE_WORDS = ("bulk",)
TASK_WORDS = ("scheduled", *SCHEDULE_WORDS)


class WholeIds(BaseConverter):
    """`<id:…>` in a route, a segment that names a resource: the route is given its whole id."""

    part_isolating = True
    regex = "[^/]+"

    def to_python(self, value: str) -> WholeId:
        return whole_id(tenant(), value)

    def to_url(self, value: str) -> str:
        return super().to_url(name_of(value))


class ScheduleIds(WholeIds):
    """`<schedule:…>` in a route. Its calendar is another resource, and no id has a dot."""

    regex = rf"(?!(?:{'|'.join(SCHEDULE_WORDS)})(?:/|$))(?![^/]*\.ics(?:/|$))[^/]+"


class EventIds(WholeIds):
    """`<event:…>` in a route."""

    regex = rf"(?!(?:{'|'.join(EVENT_WORDS)})(?:/|$))[^/]+"


class MessageIds(WholeIds):
    """`<message:…>` in a route, which is given the id of the message's event."""

    regex = rf"(?!(?:{'|'.join(MESSAGE_WORDS)})(?:/|$))[^/]+"

    def to_python(self, value: str) -> WholeId:
        return message_event_id(tenant(), value)

    def to_url(self, value: str) -> str:
        return super().to_url(message_id_of(value))


class TaskIds(WholeIds):
    """`<task:…>` in a route; a task is a schedule."""

    regex = rf"(?!(?:{'|'.join(TASK_WORDS)})(?:/|$))[^/]+"


class Names(WholeIds):
    """`<name:…>` in a route: a resource whose name may have dots.

    Clients, browsers and proxies take the segments `.` and `..` for steps in the path, also as `%2E`: in
    these two names the percent sign is quoted once more.
    """

    def to_python(self, value: str) -> WholeId:
        return super().to_python(value.replace("%2E", "."))

    def to_url(self, value: str) -> str:
        name = name_of(value)
        return "%252E" * len(name) if name in (".", "..") else super().to_url(name)


def register_converters(app: Flask) -> None:
    """Must be called before any route with such an id or name is added."""
    known: Map = app.url_map
    known.converters |= {
        "id": WholeIds,
        "schedule": ScheduleIds,
        "event": EventIds,
        "message": MessageIds,
        "task": TaskIds,
        "name": Names,
    }


CALENDAR_NAME = re.compile(r"[a-zA-Z0-9._-]{1,64}\Z")
CALENDAR_NAME_ERROR = "must be 1 to 64 letters, digits, dots, underscores and hyphens"
ID = re.compile(r"[a-zA-Z0-9-]{1,64}\Z")
_END = r"\Z"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
_PLUS_READ_AS_BLANK = re.compile(r"[0-9-]+[Tt ][0-9:.,]+ [0-9]{2}:?[0-9]{2}")


def check_visible(text: str) -> None:
    """A validator: raises ValidationError for text that controls a terminal or reorders letters."""
    if found := control_in(text):
        raise ValidationError(f"must not contain control characters or bidirectional marks, such as {found}")


class Instant(fields.DescribedField, AwareDateTime):
    """An instant: read as RFC 3339 with an offset, written in UTC; digits beyond milliseconds are dropped."""

    def __init__(self, meaning: str = "", **options: Any) -> None:
        super().__init__(meaning, format="iso", **options)
        self.error_messages["invalid_awareness"] = "needs an offset, as in 2025-01-05T12:00:00Z"
        self.error_messages["invalid"] = "must be an instant, as in 2025-01-05T12:00:00Z"
        self.error_messages["blank"] = (
            "has a blank where its offset begins, as a + in a query is read; write %2B for +, as in "
            "2025-01-05T12:00:00%2B01:00, or give the instant in UTC with a Z"
        )

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> str | None:
        return None if value is None else shown_time(value)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if not isinstance(value, str) or len(value) > 40:
            raise self.make_error("invalid", input=value, obj_type=self.OBJ_TYPE)
        if _PLUS_READ_AS_BLANK.fullmatch(value):
            raise self.make_error("blank", input=value, obj_type=self.OBJ_TYPE)
        moment: datetime = super()._deserialize(value, attr, data, **kwargs)
        try:
            moment = moment.astimezone(UTC)
        except OverflowError:
            raise self.make_error("invalid", input=value, obj_type=self.OBJ_TYPE) from None
        return whole_milliseconds(moment)


class PatternedText(fields.String):
    """Text of a pattern, which ends with the text."""

    PATTERN: ClassVar[re.Pattern[str]]
    ERROR: ClassVar[str] = "must be 1 to 64 letters, digits and hyphens"

    def __init__(self, meaning: str = "", **options: Any) -> None:
        # As JSON Schema writes it, where `$` is the very end of the text.
        pattern = f"^{self.PATTERN.pattern.removesuffix(_END)}$"
        super().__init__(
            meaning,
            validate=validate.Regexp(self.PATTERN, error=self.ERROR),
            metadata={"pattern": pattern} | options.pop("metadata", {}),
            **options,
        )


class _NameOfAnId(fields.String):
    """A name in JSON, which is a whole id of the request's tenant inside."""

    def deserialize(self, value: Any, attr: Any = None, data: Any = None, **kwargs: Any) -> Any:
        name = super().deserialize(value, attr, data, **kwargs)
        return whole_id(tenant(), name) if isinstance(name, str) else name


class ScheduleId(_NameOfAnId, PatternedText):
    """The id of a schedule."""

    PATTERN = ID


class DestinationName(PatternedText):
    """The name of a destination, where the resource that names it says whose it is."""

    PATTERN = ID

    def __init__(self, meaning: str = "", **options: Any) -> None:
        super().__init__(meaning, **{"example": "billing"} | options)


class DestinationId(_NameOfAnId, DestinationName):
    """The id of a destination that a filter names."""


class CauseId(_NameOfAnId, PatternedText):
    """The id of a failure."""

    PATTERN = ID


class CalendarName(PatternedText):
    """The name of a calendar."""

    PATTERN = CALENDAR_NAME
    ERROR = CALENDAR_NAME_ERROR


class QueueName(PatternedText):
    """The name of a queue."""

    PATTERN = QUEUE_NAME
    ERROR = f"must be 1 to {MAX_QUEUE} letters, digits and hyphens"


class MessageId(PatternedText):
    """The id of a message."""

    PATTERN = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_MESSAGE_ID}}}\Z")
    ERROR = f"must be 1 to {MAX_MESSAGE_ID} letters, digits, hyphens and underscores"


_PATH = re.compile(r"(/[^\s?#\\\x00-\x20\x7f-\x9f]*)?(\?[^\s#\x00-\x20\x7f-\x9f]*)?")
_DOTS = re.compile(r"/(\.|%2e){1,2}(/|\Z)", re.IGNORECASE)
MAX_PATH = 4_000


def check_path(path: str) -> None:
    """A validator: raises ValidationError for what is no path and query below a URL."""
    if len(path) > MAX_PATH or not _PATH.fullmatch(path):
        raise ValidationError(
            f"must begin with / or ?, have no space, # or backslash, and at most {MAX_PATH} characters"
        )
    if _DOTS.search(path.partition("?")[0]):
        raise ValidationError("must not have the segments . or .., which would leave the destination's path")


class LocalOrInstant(Instant):
    """An instant, or a local time where there is no offset: a naive datetime, which another field or the
    owner of this one puts into a zone."""

    _LOCAL = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?", re.ASCII)
    _DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

    def __init__(self, meaning: str = "", *, dates: bool = False, **options: Any) -> None:
        """`dates`: whether a date alone is taken, as its midnight."""
        super().__init__(meaning, **options)
        self._dates = dates

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if isinstance(value, str) and (
            self._LOCAL.fullmatch(value) or (self._dates and self._DATE.fullmatch(value))
        ):
            try:
                return whole_milliseconds(datetime.fromisoformat(value))
            except ValueError:
                raise self.make_error("invalid", input=value, obj_type=self.OBJ_TYPE) from None
        return super()._deserialize(value, attr, data, **kwargs)


class BoundedList(fields.List):
    """A list whose length is checked before its items, so that a refused list costs little however long."""

    def check_length(self, value: object) -> None:
        if not isinstance(value, list):
            raise ValidationError("must be a list, in brackets")
        self._validate(value)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        self.check_length(value)
        return super()._deserialize(value, attr, data, **kwargs)


class Headers(fields.Dict):
    """Header names and values, in the order given."""

    def __init__(self, meaning: str = "", **options: Any) -> None:
        super().__init__(meaning, keys=fields.String(), values=fields.String(), **options)

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        return dict(value)

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> Any:
        if not isinstance(value, Mapping):
            raise ValidationError('must be an object of names and values, such as {"X-Team": "ops"}')
        # The length is checked before the items, as in BoundedList.
        self._validate(value)
        try:
            return tuple(super()._deserialize(value, attr, data, **kwargs).items())
        except ValidationError as error:
            # marshmallow reports keys and values apart, below the name; the client's JSON has no such levels.
            of_names = error.normalized_messages()
            raise ValidationError(
                {name: [text for part in said.values() for text in part] for name, said in of_names.items()}
            ) from None


_STATUS = {
    "type": ["integer", "string"],
    "minimum": 100,
    "maximum": 599,
    "pattern": "^[1-5](xx|[0-9]{2}(-[1-5][0-9]{2})?)$",
}


class StatusCodes(BoundedList):
    """HTTP statuses: numbers, "5xx" or "500-504"."""

    def __init__(self, meaning: str = "", **options: Any) -> None:
        super().__init__(fields.Raw(metadata=_STATUS), meaning, **options)

    def check_length(self, value: object) -> None:
        super().check_length(value)
        if isinstance(value, list) and not 1 <= len(value) <= 50:
            raise ValidationError("needs 1 to 50 entries")

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        return list(value.written)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        items: list[Any] = super()._deserialize(value, attr, data, **kwargs)
        if any(isinstance(item, bool) or not isinstance(item, int | str) for item in items):
            raise ValidationError('each entry is a number, "5xx" or "500-504"')
        try:
            return Codes(tuple(items))
        except ValueError as error:
            raise ValidationError(str(error)) from None


class Cursor(fields.String):
    """A place in a list, opaque to clients, so that its content may change between releases."""

    #: The id, and in a list by name the name in a second line.
    _INSIDE = re.compile(r"(-?\d{1,15})\.([\x20-\x7e]{1,200})(?:\n(.{1,1000}))?\Z", re.DOTALL | re.ASCII)

    def __init__(self, meaning: str = "", **options: Any) -> None:
        super().__init__(meaning, **options)
        self.error_messages["unknown"] = "is no next_cursor of this API; start again without it"

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        if value is None:
            return None
        inside = f"{(value.moment - EPOCH) // MILLISECOND}.{value.id}"
        if value.name:
            inside += f"\n{value.name}"
        return urlsafe_b64encode(inside.encode()).decode().rstrip("=")

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        try:
            inside = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
            found = self._INSIDE.match(inside)
            if found is None:
                raise self.make_error("unknown")
            return Position(EPOCH + int(found[1]) * MILLISECOND, found[2], found[3] or "")
        except (binascii.Error, ValueError, OverflowError):
            raise self.make_error("unknown") from None
