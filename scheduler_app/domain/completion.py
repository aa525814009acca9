"""Who says that an event's work is done: the response to its request, or its receiver, which calls back."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from typing import Literal

Completion = Literal["response", "callback"]

DEFAULT_TIMEOUT_SECONDS = 3_600.0
LEAST_TIMEOUT_SECONDS = 1.0
MAX_TIMEOUT_SECONDS = 604_800.0
#: Tokens of so many attempts are known: a receiver may keep the one that it was sent first.
KEPT_TOKENS = 10
MAX_REASON = 500


class CompletionToken(str):
    """What a receiver shows to say how its work went. It is shown in no log: its `repr` is a mask."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "CompletionToken('***')"


def new_token() -> CompletionToken:
    """192 random bits."""
    return CompletionToken(secrets.token_urlsafe(24))


def digest(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_known(token: str, digests: Iterable[str]) -> bool:
    """Whether it is one of the tokens; the time that it takes says nothing of them."""
    given = digest(token)
    # All of them are compared, whichever fits.
    return sum(hmac.compare_digest(given, each) for each in digests) > 0
