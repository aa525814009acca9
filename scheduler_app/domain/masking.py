"""Which header values are secrets, and what stands in their place wherever they are shown."""

import re

MASK = "********"

_SECRET_NAME = re.compile(
    r"authorization|cookie|token|secret|password|passwd|credential|signature|session|api[-_]?key|auth[-_]?key"
    r"|access[-_]?key|private[-_]?key|^x-auth|^auth$",
    re.IGNORECASE,
)


def is_secret(header_name: str) -> bool:
    """Whether a header of this name carries a secret as a rule."""
    return _SECRET_NAME.search(header_name) is not None


def masked(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The headers as they may be shown."""
    return tuple((name, MASK if is_secret(name) else value) for name, value in headers)


def unmasked(
    headers: tuple[tuple[str, str], ...], known: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, str], ...]:
    """Headers that came back from a reader: a mask means unchanged. Raises KeyError(header's name)."""
    values = {name.lower(): value for name, value in known}
    return tuple(
        (name, values[name.lower()] if value == MASK and is_secret(name) else value)
        for name, value in headers
    )
