"""How a command line is let in by a person who has signed in in a browser.

The command line draws a verifier, and only its SHA-256, the challenge, leaves it at first (RFC 7636). Where
the browser runs on the same machine, it brings a code back to a port that the command line listens on. Where
it does not, the person types a short code, which follows from the challenge: so nothing has to be stored
before somebody has signed in, and nobody else's verifier leads to the same code.
"""

import base64
import hashlib
import re
import secrets
from typing import Final

#: How the token of a person's command line begins.
TOKEN_PREFIX: Final = "rrp_"  # noqa: S105 - no secret
CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
VERIFIER: Final = re.compile(r"[A-Za-z0-9_-]{43,128}")
#: Without letters and digits that look alike.
_LETTERS: Final = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
_GROUPS, _GROUP = 3, 4


def new_verifier() -> str:
    return secrets.token_urlsafe(32)


def new_code() -> str:
    """A fresh code, which a browser brings to a command line."""
    return secrets.token_urlsafe(32)


def new_token() -> str:
    """A fresh token of a person's command line."""
    return f"{TOKEN_PREFIX}{secrets.token_urlsafe(32)}"


def challenge_of(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode("utf-8", "surrogatepass")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def typed_code_of(challenge: str) -> str:
    """What a person types, as `7KQ2-M9XA-P4TD`: 60 bits."""
    number = int.from_bytes(hashlib.sha256(f"typed {challenge}".encode("utf-8", "surrogatepass")).digest())
    letters = []
    for _ in range(_GROUPS * _GROUP):
        number, digit = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[digit])
    return "-".join("".join(letters[at : at + _GROUP]) for at in range(0, len(letters), _GROUP))


def read_typed_code(text: str) -> str | None:
    """The code as `typed_code_of` writes it, of what a person has typed; None if it is none."""
    letters = re.sub(r"[\s-]", "", text.upper())
    if len(letters) != _GROUPS * _GROUP or set(letters) - set(_LETTERS):
        return None
    return "-".join(letters[at : at + _GROUP] for at in range(0, len(letters), _GROUP))
