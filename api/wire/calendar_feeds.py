"""Calendar feeds."""

from marshmallow import fields, validate

from scheduler_app.api.wire.field_types import Instant, check_visible
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.domain.schedule import MAX_NAME

_MAX_TAG = 64
_MAX_TOKEN = 200
_NAME = {"description": "What people call it, such as who reads it", "example": "Operations' calendar"}
_TAG = {"description": "Only schedules with this tag are shown; absent: all", "example": "nightly"}


class FeedInput(InputSchema):
    name = fields.String(
        required=True, validate=[validate.Length(min=1, max=MAX_NAME), check_visible], metadata=_NAME
    )
    tag = fields.String(validate=[validate.Length(min=1, max=_MAX_TAG), check_visible], metadata=_TAG)


class FeedOutput(OmitNone):
    """A feed without its token, which only the answer to its creation shows."""

    id = fields.String(required=True, metadata={"description": "The feed's id"})
    name = fields.String(metadata=_NAME)
    tag = fields.String(metadata=_TAG)
    created_at = Instant(metadata={"description": "When it was created"})
    reason = fields.String(metadata={"description": "Why its stored document cannot be read"})


class CreatedFeed(FeedOutput):
    token = fields.String(
        required=True,
        metadata={"description": "Opens this calendar, and nothing else. Shown only in this answer"},
    )
    path = fields.String(
        required=True,
        metadata={"description": "What to append to the API's host: the URL for a calendar program"},
    )


class FeedList(OutputSchema):
    feeds = fields.List(fields.Nested(FeedOutput), required=True, metadata={"description": "Newest first"})


class CalendarQuery(InputSchema):
    tag = fields.String(validate=validate.Length(min=1, max=_MAX_TAG), metadata=_TAG)
    token = fields.String(
        validate=validate.Length(min=1, max=_MAX_TOKEN),
        metadata={"description": "A feed's token, instead of an API key. No other path takes one"},
    )
