"""Signing secrets: asked for, and shown once."""

from marshmallow import fields, validate

from api.wire.field_types import Instant
from api.wire.input_schema import InputSchema
from api.wire.output_schema import OmitNone
from scheduler_app.domain.signing import DEFAULT_OVERLAP_SECONDS, MAX_OVERLAP_SECONDS


class SigningInput(InputSchema):
    body_optional = True
    overlap_seconds = fields.Integer(
        strict=True,
        load_default=DEFAULT_OVERLAP_SECONDS,
        validate=validate.Range(0, MAX_OVERLAP_SECONDS),
        metadata={"description": "How long the secret that is replaced signs beside the new one"},
    )


class SigningOutput(OmitNone):
    signing_secret = fields.String(
        required=True,
        metadata={
            "description": "`whsec_` and base64 (Standard Webhooks). Shown this once: it is not in any other"
            " answer, and what is kept for an Idempotency-Key has a mask in its place.",
            "example": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        },
    )
    signing_since = Instant(required=True)
    signing_overlap_until = Instant(metadata={"description": "Until then an older secret signs as well"})
