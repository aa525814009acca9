"""Which trigger kind the text in the field "When" is of, and the text of a trigger."""

import re
from collections.abc import Mapping

from scheduler_app.api.json_types import View

_CRON_MINUTES = re.compile(r"[0-9*,/?-]+")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d.*", re.ASCII)
_RULE = re.compile(r"\b(FREQ\s*=|RRULE|DTSTART|RDATE)", re.IGNORECASE)
#: The fields of the API that are no text, by their names: `every_seconds: 900`.
_NAMED = re.compile(r"(every_seconds|delay_seconds)\s*[:=]\s*([0-9]{1,12})", re.ASCII)
ON_DEMAND = "on demand"


def trigger_fields(text: str) -> View:
    """The text as the field of the API that takes it: an RRULE, cron, an instant, a named one, or else a
    phrase."""
    words = text.split()
    if _RULE.search(text):
        # A form sends lines as browsers end them.
        return {"rrule": "\n".join(line.strip() for line in text.splitlines() if line.strip())}
    if named := _NAMED.fullmatch(text.strip()):
        return {named[1]: int(named[2])}
    if [word.lower() for word in words] == ON_DEMAND.split():
        return {"on_demand": True}
    if text.startswith("@"):
        return {"cron": text.strip()}
    if len(words) in (5, 6, 7) and all(_CRON_MINUTES.fullmatch(word) for word in words[:2]):
        return {"cron": text.strip()}
    if len(words) <= 2 and _INSTANT.fullmatch(text.strip()):
        return {"run_at": text.strip()}
    return {"phrase": text.strip()}


def when_text(written: Mapping[str, object]) -> str:
    """The text that `trigger_fields` reads as these fields, as far as it can say them."""
    for name in ("rrule", "cron", "phrase", "run_at"):
        if name in written:
            return str(written[name])
    for name in ("every_seconds", "delay_seconds"):
        if name in written:
            return f"{name}: {written[name]}"
    return ON_DEMAND if written.get("on_demand") else ""
