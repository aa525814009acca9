"""What several nouns share: strictness, paging."""

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from marshmallow import (
    INCLUDE,
    RAISE,
    Schema,
    ValidationError,
    fields,
    missing,
    post_dump,
    validate,
    validates_schema,
)

from api.errors import MAX_ERRORS, Omitted
from api.fields import Cursor
from api.misnomers import meant
from api.plain_words import speak_plainly
from scheduler_app.store.listing import Window

ID = re.compile(r"[a-zA-Z0-9-]{1,64}\Z")
CALENDAR_NAME = re.compile(r"[a-zA-Z0-9._-]{1,64}\Z")
CALENDAR_NAME_ERROR = "must be 1 to 64 letters, digits, dots, underscores and hyphens"
MAX_LIMIT = 500
MAX_PAGE = 10_000
#: Pages are counted by walking over what comes before them; a cursor walks over nothing.
MAX_WALKED = 100_000


class Strict(Schema):
    """Unknown fields are refused by name."""

    #: Whether a request without any body means an empty object.
    body_optional = False
    #: Values in a body, at all depths: each takes far more memory than the bytes that it came in.
    max_values = 256 * 1024

    error_messages = {"type": "must be a JSON object, in braces"}  # noqa: RUF012 (marshmallow's own name)

    class Meta:
        unknown = RAISE

    def _init_fields(self) -> None:
        super()._init_fields()
        #: Name, wire name, field, and whether the field has a say where it is not given.
        self._reads = [
            (
                field.attribute or name,
                field.data_key or name,
                field,
                field.required or field.load_default is not missing,
            )
            for name, field in self.load_fields.items()
        ]
        self._known = {key for _, key, _, _ in self._reads}
        for field in self.load_fields.values():
            speak_plainly(field)

    def _deserialize(self, data: Any, *, error_store: Any, **options: Any) -> Any:
        """As marshmallow's own, but fields that were not given and have no say then are passed over: of a
        schedule's twenty that is most of them, and asking each was most of the work."""
        if not isinstance(data, Mapping) or options.get("many") or options.get("partial"):
            return super()._deserialize(data, error_store=error_store, **options)
        read: dict[str, Any] = {}
        unknown = (key for key in data if key not in self._known)
        better = {key: meant(str(key), self._known) for key in islice(unknown, MAX_ERRORS)}
        elsewhere = {each.field for each in better.values() if each}
        for name, key, field, always in self._reads:
            value = data.get(key, missing)
            # What was given under another name is not said to be missing.
            if value is missing and (not always or key in elsewhere):
                continue
            try:
                value = field.deserialize(value, key, data)
            except ValidationError as error:
                error_store.store_error(error.messages, key)
                value = error.valid_data or missing
            if value is not missing:
                read[name] = value
        # The names are long: said once, of the first field that nothing comes near.
        names = f": this takes {', '.join(sorted(self._known))}"
        for key, found in better.items():
            if found:
                error_store.store_error([f"Unknown field: {found.advice}"], key)
            else:
                error_store.store_error([f"Unknown field{names}"], key)
                names = ""
        if omitted := sum(1 for _ in unknown):
            error_store.store_error([Omitted(omitted)])
        return read


class ScheduleId(fields.String):
    """The id of a schedule: its owner's choice, or ours."""

    def __init__(self, metadata: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(
            validate=validate.Regexp(ID, error="must be 1 to 64 letters, digits and hyphens"),
            # In the dialect of JSON Schema, where `$` is the very end.
            metadata={"pattern": "^[a-zA-Z0-9-]{1,64}$"} | (metadata or {}),
            **kwargs,
        )


class Output(Schema):
    """What is shown. Clients must not mind a field they do not know: answers grow."""

    class Meta:
        unknown = INCLUDE

    def _serialize(self, obj: Any, *, many: bool = False) -> Any:
        """As marshmallow's own; of a mapping only the fields that it has are shown, without asking for each
        by way of accessors, which is most of the work of a long list."""
        if many or not isinstance(obj, Mapping):
            return super()._serialize(obj, many=many)
        return {
            field.data_key or name: field._serialize(obj[field.attribute or name], name, obj)
            for name, field in self.dump_fields.items()
            if (field.attribute or name) in obj
        }


class Sparse(Output):
    """What there is nothing to say of is left out."""

    @post_dump
    def without_nothing(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {name: value for name, value in data.items() if value is not None}


class FieldProblem(Output):
    """What is wrong with one field."""

    pointer = fields.String(
        required=True,
        metadata={"description": "Where: a JSON pointer, or the parameter's name", "example": "/rrule"},
    )
    detail = fields.String(required=True)


class Problem(Output):
    """An error (RFC 9457)."""

    type = fields.String(required=True, metadata={"example": "about:blank"})
    title = fields.String(required=True, metadata={"example": "Unprocessable Entity"})
    status = fields.Integer(required=True, metadata={"example": 422})
    detail = fields.String(required=True, metadata={"description": "What to do about it"})
    errors = fields.List(
        fields.Nested(FieldProblem),
        metadata={
            "description": f"The fields that are wrong, where some are: the first {MAX_ERRORS} of them, and"
            " in an answer to a bulk 1,000 of all its items together"
        },
    )
    errors_omitted = fields.Integer(metadata={"description": "How many more are wrong; absent for none"})


class Message(Output):
    message = fields.String(required=True)


class WriteQuery(Strict):
    """What every route that writes takes beside its body."""

    dry_run = fields.Boolean(
        truthy={"true"},
        falsy={"false"},
        load_default=False,
        metadata={
            "description": "Answer what would be done, with `dry_run: true`, and do nothing. Ids that would"
            " be generated are examples, and secrets are masks."
        },
    )


class Paging(Strict):
    limit = fields.Integer(
        load_default=10,
        validate=validate.Range(1, MAX_LIMIT),
        metadata={"description": "How many at most"},
    )
    page = fields.Integer(
        load_default=1,
        validate=validate.Range(1, MAX_PAGE),
        metadata={
            "description": "Which page of `limit` each, from 1. What comes and goes meanwhile shifts pages:"
            " to read a whole list use `cursor`."
        },
    )
    cursor = Cursor(
        metadata={"description": "The `next_cursor` of the answer before: the list goes on right after it"}
    )

    @validates_schema
    def check_paging(self, data: dict[str, Any], **_: Any) -> None:
        if "cursor" in data and data["page"] > 1:
            raise ValidationError("give cursor or page, not both", "page")
        if data["page"] * data["limit"] > MAX_WALKED:
            raise ValidationError(f"page × limit must not exceed {MAX_WALKED}; go on by cursor", "page")


def window(query: dict[str, Any]) -> Window:
    """Takes paging and times out of a query that `Paging` has read."""
    limit, page = query.pop("limit"), query.pop("page", 1)
    return Window(
        limit=limit,
        skip=(page - 1) * limit,
        after=query.pop("cursor", None),
        since=query.pop("since", None),
        until=query.pop("until", None),
    )


class Listed(Output):
    """A page of a list."""

    page = fields.Integer(required=True)
    limit = fields.Integer(required=True)
    next_cursor = Cursor(
        required=True,
        allow_none=True,
        metadata={
            "description": "Give it as `cursor` for the next page; null at the end. Before the end a page may"
            " be shorter than `limit`, or empty: one call looks through at most 100,000 rows for its filter."
        },
    )
