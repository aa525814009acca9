"""Tokens in URLs: whoever has one may do one thing with one resource, without a key.

A token is `<id>.<secret>`; of the secret only the SHA-256 is kept. In an id no dot is allowed, so that a
token is split at its last one.
"""

import hashlib
import hmac
import secrets

from scheduler_app.domain.ids import SEPARATOR

_SEPARATOR = "."


def new_token(own_id: str) -> tuple[str, str]:
    """A fresh token of 256 random bits for what has this id, and the SHA-256 to keep of it."""
    secret = secrets.token_urlsafe(32)
    shown = own_id.replace(SEPARATOR, _SEPARATOR)
    return f"{shown}{_SEPARATOR}{secret}", _digest(secret)


def id_of(token: str) -> str:
    """The id that a token names."""
    return token.rpartition(_SEPARATOR)[0].replace(_SEPARATOR, SEPARATOR, 1)


def is_token_of(token: str, secret_sha256: str) -> bool:
    """Whether its secret is the one of which this was kept."""
    return hmac.compare_digest(_digest(token.rpartition(_SEPARATOR)[2]), secret_sha256)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
