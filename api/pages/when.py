"""Which trigger kind the text in the field "When" is of."""

import re

_CRON_MINUTES = re.compile(r"[0-9*,/?-]+")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d.*", re.ASCII)
_RULE = re.compile(r"\b(FREQ\s*=|RRULE|DTSTART|RDATE)", re.IGNORECASE)


def trigger_fields(text: str) -> dict[str, str]:
    """The text as the field of the API that takes it: an RRULE, cron, an instant, or else a phrase."""
    words = text.split()
    if _RULE.search(text):
        # A form sends lines as browsers end them.
        return {"rrule": "\n".join(line.strip() for line in text.splitlines() if line.strip())}
    if text.startswith("@"):
        return {"cron": text.strip()}
    if len(words) in (5, 6, 7) and all(_CRON_MINUTES.fullmatch(word) for word in words[:2]):
        return {"cron": text.strip()}
    if len(words) <= 2 and _INSTANT.fullmatch(text.strip()):
        return {"run_at": text.strip()}
    return {"phrase": text.strip()}
