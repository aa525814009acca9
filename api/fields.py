"""Field types of the wire that marshmallow does not have."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError, fields

from scheduler_app.domain.retry import Codes


def shown_instant(value: datetime) -> str:
    """`2025-01-05T12:00:00Z`; milliseconds when there are any."""
    utc = value.astimezone(UTC)
    precision = "milliseconds" if utc.microsecond else "seconds"
    return utc.isoformat(timespec=precision).replace("+00:00", "Z")


class Instant(fields.AwareDateTime):
    """An instant: RFC 3339 with an offset in, UTC out; milliseconds count, finer digits are cut off."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(format="iso", **kwargs)
        self.error_messages["invalid_awareness"] = "needs an offset, as in 2025-01-05T12:00:00Z"
        self.error_messages["invalid"] = "must be an instant, as in 2025-01-05T12:00:00Z"

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        return None if value is None else shown_instant(value)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if not isinstance(value, str) or len(value) > 40:
            raise self.make_error("invalid", input=value, obj_type=self.OBJ_TYPE)
        moment: datetime = super()._deserialize(value, attr, data, **kwargs)
        try:
            moment = moment.astimezone(UTC)
        except OverflowError:
            raise self.make_error("invalid", input=value, obj_type=self.OBJ_TYPE) from None
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


class Headers(fields.Dict):
    """Header names and values, in the order given."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(keys=fields.String(), values=fields.String(), **kwargs)

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        return dict(value)

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> Any:
        return tuple(super()._deserialize(value, attr, data, **kwargs).items())


class StatusCodes(fields.List[Any]):
    """HTTP statuses: numbers, "5xx" or "500-504"."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(fields.Raw(metadata={"type": ["integer", "string"]}), **kwargs)

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        return list(value.written)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        items: list[Any] = super()._deserialize(value, attr, data, **kwargs)
        if not 1 <= len(items) <= 50:
            raise ValidationError("needs 1 to 50 entries")
        if any(isinstance(item, bool) or not isinstance(item, int | str) for item in items):
            raise ValidationError('each entry is a number, "5xx" or "500-504"')
        try:
            return Codes(tuple(items))
        except ValueError as error:
            raise ValidationError(str(error)) from None
