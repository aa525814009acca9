"""Signatures as Standard Webhooks describes them (https://www.standardwebhooks.com)."""

import base64
import binascii
import hmac
from collections.abc import Iterable, Sequence

_PREFIX = "whsec_"
_SECRET_BYTES = (24, 64)
#: A sender that rotates its secrets sends two or three signatures.
_MAX_SIGNATURES = 16


def signing_keys(secrets: str | Sequence[str]) -> tuple[bytes, ...]:
    """The bytes of one secret or of several, "whsec_" and base64 each.

    Raises ValueError, which never repeats a secret, for one that is malformed and for none at all.
    """
    texts = [secrets] if isinstance(secrets, str) else [*secrets]
    if not texts:
        raise ValueError("secrets: give at least one; POST /api/v1/schedules/{id}/signing-secret makes one")
    return tuple(_signing_key(text, place) for place, text in enumerate(texts, 1))


def is_signed(keys: Iterable[bytes], message_id: str, timestamp: str, body: bytes, signatures: str) -> bool:
    """Whether one of `signatures` is valid for one of `keys`.

    Spaces separate signatures; each is "v1," and the base64 of HMAC-SHA256 over `message_id.timestamp.body`.
    """
    content = f"{message_id}.{timestamp}.".encode("latin-1", "replace") + body
    valid = [b"v1," + base64.b64encode(hmac.digest(key, content, "sha256")) for key in keys]
    given = [text.encode("latin-1", "replace") for text in signatures.split(maxsplit=_MAX_SIGNATURES)]
    return any(hmac.compare_digest(ours, theirs) for ours in valid for theirs in given[:_MAX_SIGNATURES])


def _signing_key(secret: str, place: int) -> bytes:
    key = b""
    if secret.startswith(_PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            key = b""
    low, high = _SECRET_BYTES
    if not low <= len(key) <= high:
        raise ValueError(f"secrets: number {place} must be {_PREFIX} and the base64 of {low} to {high} bytes")
    return key
