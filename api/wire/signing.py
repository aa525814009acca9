"""Generating a signing secret."""

from marshmallow import fields, validate

from scheduler_app.api.wire.field_types import Instant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone
from scheduler_app.domain.signing import DEFAULT_OVERLAP_SECONDS, MAX_OVERLAP_SECONDS


class SigningInput(InputSchema):
    body_optional = True
    overlap_seconds = fields.Integer(
        strict=True,
        load_default=DEFAULT_OVERLAP_SECONDS,
        validate=validate.Range(0, MAX_OVERLAP_SECONDS),
        metadata={"description": "How long the replaced secret signs beside the new one"},
    )


class SigningOutput(OmitNone):
    signing_secret = fields.String(
        required=True,
        metadata={
            "description": "`whsec_` and base64 (Standard Webhooks). Shown only in this answer: a repeated"
            " request with the same Idempotency-Key is answered with a mask in its place.",
            "example": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        },
    )
    signing_since = Instant(required=True, metadata={"description": "When the secret was generated"})
    signing_overlap_until = Instant(metadata={"description": "Until when an older secret signs as well"})
