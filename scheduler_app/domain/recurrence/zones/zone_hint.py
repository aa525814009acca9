"""What may have been meant by a name that is not a time zone."""

import re
from difflib import get_close_matches

from .zone import zone_names

_OFFSET = re.compile(r"[a-z]{0,4} ?[+-]\d{1,2}(:?\d\d)?", re.ASCII | re.IGNORECASE)
_LONGEST = 40


def better_zone(name: str) -> str:
    """What to give instead of `name`, which is no IANA zone."""
    if _OFFSET.fullmatch(name):
        return "an offset knows no clock changes: name a place such as Europe/Paris, or UTC"
    city = name.rpartition("/")[2].strip().replace(" ", "_").lower()
    if city and len(name) <= _LONGEST:
        # Only those that begin alike: a comparison with all 600 takes milliseconds.
        alike = {
            known.rpartition("/")[2].lower(): known
            for known in zone_names()
            if known.rpartition("/")[2][:1].lower() == city[0]
        }
        if close := get_close_matches(city, alike, n=1, cutoff=0.8):
            return f"did you mean {alike[close[0]]}?"
    return "use a name such as Europe/Paris or UTC"
