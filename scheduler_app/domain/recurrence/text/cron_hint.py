"""Tells a cron expression that stands where a rule belongs; `domain/triggers/cron` reads it."""

import re
from typing import Final

_LONGEST: Final = 100
_NAMES: Final = "jan feb mar apr may jun jul aug sep oct nov dec sun mon tue wed thu fri sat"
_FIELD: Final = re.compile(rf"(?:[0-9*?LW/,#-]|{_NAMES.replace(' ', '|')})+", re.IGNORECASE)


def cron_hint(text: str) -> str | None:
    """The end of a sentence that begins with the quoted `text`; None when it is no cron expression."""
    if len(text) > _LONGEST:
        return None
    fields = text.split()
    if not text.startswith("@") and not (5 <= len(fields) <= 7 and all(map(_FIELD.fullmatch, fields))):
        return None
    return "is a cron expression; give it as the field cron in the place of rrule"
