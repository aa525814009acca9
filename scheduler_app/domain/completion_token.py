"""What a receiver shows to say how its work went."""

import secrets


class CompletionToken(str):
    """What a receiver shows to say how its work went. It is shown in no log: its `repr` is a mask."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "CompletionToken('***')"


def new_token() -> CompletionToken:
    """192 random bits."""
    return CompletionToken(secrets.token_urlsafe(24))
