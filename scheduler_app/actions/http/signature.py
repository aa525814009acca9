"""Signing what is sent, as Standard Webhooks describes it (https://www.standardwebhooks.com)."""

import base64
import binascii
import hmac
import secrets
from functools import lru_cache

from scheduler_app.domain.errors import InvalidField

PREFIX = "whsec_"
SECRET_BYTES = (24, 64)


def new_secret() -> str:
    """A fresh signing secret: "whsec_" and the base64 of 32 random bytes."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def check_secret(secret: str) -> None:
    """Raises InvalidField("signing_secret", …) where `sign` could not use `secret`; never repeats it."""
    _mac(secret)


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """One signature, "v1,<base64>": HMAC-SHA256 with the secret's bytes over `id.timestamp.body`.

    `timestamp` is in seconds since 1970, as in `webhook-timestamp`. Raises InvalidField for an unusable
    secret.
    """
    mac = _mac(secret).copy()
    mac.update(f"{message_id}.{timestamp}.".encode())
    mac.update(body)
    return "v1," + base64.b64encode(mac.digest()).decode()


@lru_cache(maxsize=512)
def _mac(secret: str) -> hmac.HMAC:
    """The HMAC that has taken in the key; a signature continues a copy, which costs less than setting up."""
    try:
        key = (
            base64.b64decode(secret.removeprefix(PREFIX), validate=True) if secret.startswith(PREFIX) else b""
        )
    except (binascii.Error, ValueError):
        key = b""
    low, high = SECRET_BYTES
    if not low <= len(key) <= high:
        raise InvalidField("signing_secret", f"must be {PREFIX} and the base64 of {low} to {high} bytes")
    return hmac.new(key, digestmod="sha256")
