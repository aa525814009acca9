"""Rules that fire at the same instants whenever they began, which most cron lines are: schedules that were
made at different times share what is computed of one."""

import re
from functools import lru_cache
from typing import Final

_DTSTART: Final = re.compile(r"(DTSTART[^:\n]*:)[0-9]{8}T[0-9]{6}(Z?)\n")
#: Before any that share a text: the start of one that begins next week would hide the runs of the others.
_LONG_AGO: Final = "19700101T000000"
#: Everything that is smaller than the frequency is written out, and nothing is counted from the start.
_RULE: Final = re.compile(
    r"RRULE:FREQ=(?:(?:(?:(?:WEEKLY(?=[^\n]*;BYDAY=)|MONTHLY(?=[^\n]*;BY(?:MONTH)?DAY=)|DAILY)"
    r"(?=[^\n]*;BYHOUR=)|HOURLY)(?=[^\n]*;BYMINUTE=)|MINUTELY)(?=[^\n]*;BYSECOND=))"
    r"(?:;(?:BYMONTH|BYMONTHDAY|BYDAY|BYHOUR|BYMINUTE|BYSECOND|UNTIL)=[^;\n]+)+"
)


def with_common_start(text: str) -> str:
    """A pinned text with a DTSTART of long ago, if its rules do not depend on that: from its own DTSTART on
    it has the same occurrences, and texts that are alike have the same ones. Any other text as it is."""
    start = _DTSTART.match(text)
    if start is None or not _are_start_free(rules := text[start.end() :]):
        return text
    return f"{start[1]}{_LONG_AGO}{start[2]}\n{rules}"


@lru_cache(maxsize=4_096)
def _are_start_free(rules: str) -> bool:
    return all(map(_RULE.fullmatch, rules.split("\n")))
