"""Field types of the wire that marshmallow does not have."""

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from marshmallow import ValidationError, fields

from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.retry import Codes
from scheduler_app.domain.text import control_in
from scheduler_app.store.paging import Position

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
_PLUS_READ_AS_BLANK = re.compile(r"[0-9-]+[Tt ][0-9:.,]+ [0-9]{2}:?[0-9]{2}")


def check_visible(text: str) -> None:
    """A validator: raises ValidationError for text that drives a terminal, or is shown in another order."""
    if found := control_in(text):
        raise ValidationError(f"must not contain control characters or bidirectional marks, such as {found}")


class Instant(fields.AwareDateTime):
    """An instant: RFC 3339 with an offset in, UTC out; milliseconds count, finer digits are cut off."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(format="iso", **kwargs)
        self.error_messages["invalid_awareness"] = "needs an offset, as in 2025-01-05T12:00:00Z"
        self.error_messages["invalid"] = "must be an instant, as in 2025-01-05T12:00:00Z"
        self.error_messages["blank"] = (
            "has a blank where its offset begins, as a + in a query is read; write %2B for +, as in "
            "2025-01-05T12:00:00%2B01:00, or give the instant in UTC with a Z"
        )

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        return None if value is None else shown_instant(value)

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
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


class BoundedList(fields.List[Any]):
    """A list whose length is checked before its items: 100,000 that are wrong cost no more than one."""

    def check_length(self, value: Any) -> None:
        if not isinstance(value, list):
            raise ValidationError("must be a list, in brackets")
        self._validate(value)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        self.check_length(value)
        return super()._deserialize(value, attr, data, **kwargs)


class Headers(fields.Dict):
    """Header names and values, in the order given."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(keys=fields.String(), values=fields.String(), **kwargs)

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        return dict(value)

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> Any:
        if not isinstance(value, Mapping):
            raise ValidationError('must be an object of names and values, such as {"X-Team": "ops"}')
        # Before its items, as in BoundedList.
        self._validate(value)
        try:
            return tuple(super()._deserialize(value, attr, data, **kwargs).items())
        except ValidationError as error:
            # marshmallow tells the "key" from the "value" below a name; a client's JSON has neither.
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

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(fields.Raw(metadata=_STATUS), **kwargs)

    def check_length(self, value: Any) -> None:
        super().check_length(value)
        if not 1 <= len(value) <= 50:
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
    """A place in a list, opaque on the wire: nobody should build one, so that its inside may change."""

    _INSIDE = re.compile(r"(-?\d{1,15})\.([\x20-\x7e]{1,200})\Z")

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.error_messages["unknown"] = "is no next_cursor of this API; begin again without it"

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        if value is None:
            return None
        inside = f"{(value.moment - EPOCH) // MILLISECOND}.{value.id}"
        return urlsafe_b64encode(inside.encode()).decode().rstrip("=")

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        try:
            inside = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii")
            found = self._INSIDE.match(inside)
            if found is None:
                raise self.make_error("unknown")
            return Position(EPOCH + int(found[1]) * MILLISECOND, found[2])
        except (binascii.Error, ValueError, OverflowError):
            raise self.make_error("unknown") from None
