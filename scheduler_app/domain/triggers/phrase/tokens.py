"""A phrase cut into words, numbers, times, dates and marks."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from .words import MONTHS, WEEKDAYS

#: A longer phrase is no phrase; the grammar's work grows with the length, and is bounded by it.
MAX_TOKENS: Final = 80

_AREAS: Final = "africa|america|antarctica|arctic|asia|atlantic|australia|europe|indian|pacific|etc"
_OFFSET: Final = r"z|[+-]\d{2}:?\d{2}"
_TOKEN: Final = re.compile(
    rf"""
      (?P<stamp>
          \d{{4}}-\d{{2}}-\d{{2}}t\d{{2}}:\d{{2}}(?::\d{{2}}(?:\.0+)?)?(?:{_OFFSET})?(?![\w+:.])
        | \d{{8}}t\d{{4}}(?:\d{{2}})?(?:{_OFFSET})?(?![\w+:.])
        | \d{{4}}-\d{{2}}-\d{{2}}\ \d{{2}}:\d{{2}}(?::\d{{2}}(?:\.0+)?)?\ ?(?:{_OFFSET})(?![\w+:.])
      )
    | (?P<iso>\d{{4}}-\d{{1,2}}-\d{{1,2}}(?![\w-])|\d{{4}}/\d{{1,2}}/\d{{1,2}}(?![\w/]))
    | (?P<numeric>\d{{1,2}}[/.]\d{{1,2}}[/.]\d{{4}}(?!\w) | \d{{1,2}}/\d{{1,2}}(?![\w/]))
    | (?P<clock>\d{{1,2}}:\d{{2}}(?::\d{{2}})?(?![\d:]))
    | (?P<minute>:\d{{2}}(?!\d))
    | (?P<dotted>\d{{1,2}}\.\d{{1,2}}(?![\d.]))
    | (?P<signed>(?<!\S)[-+]\d+)
    | (?P<ordinal>\d{{1,3}}(?:st|nd|rd|th)(?![a-z]))
    | (?P<number>\d+)
    | (?P<meridiem>[ap]\.m\.?(?![a-z]))
    | (?P<zone>(?:{_AREAS})/[a-z_]+(?:/[a-z_]+)?)
    | (?P<word>[a-z]+(?:['’][a-z]+)?)
    | (?P<mark>[,;&@/–—-])
    | (?P<silent>[.!?()](?!\w) | \((?=\w))
    | (?P<junk>\S[^\s,;]*)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_HYPHENATED: Final = re.compile(r"([a-z]+)-(?=[a-z])", re.IGNORECASE)
_PREFIXES: Final = {"bi", "semi", "tri", "week", "every", "mid"}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the phrase: what kind it is, its text in lower case, and as it was written.

    `glued` says that no space stands before it, which tells "17h" from "17 h…".
    """

    kind: str
    text: str
    written: str
    glued: bool = False

    @property
    def number(self) -> int:
        """The value of a number or an ordinal such as `15th`."""
        digits = self.text if self.kind == "number" else self.text[:-2]
        return int(digits[:10])


def tokens_of(phrase: str) -> list[Token]:
    """The tokens of a phrase, at most `kind.MAX_CHARACTERS` long; more than `MAX_TOKENS` are the caller's
    to refuse."""
    text = unicodedata.normalize("NFKC", phrase)
    text = _HYPHENATED.sub(_unhyphenated, text)
    found: list[Token] = []
    end = 0
    for match in _TOKEN.finditer(text):
        kind, written = match.lastgroup or "junk", match.group()
        glued = match.start() == end and end > 0
        end = match.end()
        if kind == "silent":
            continue
        lower = written.lower().replace("’", "'")
        if kind == "meridiem":
            kind, lower = "word", lower.replace(".", "")
        if kind == "mark":
            lower = "-" if lower in "–—-" else lower
        found.append(Token(kind, lower, written, glued))
    return found


def _unhyphenated(match: re.Match[str]) -> str:
    """Hyphens stay where they mean "to" (mon-fri, jan-mar); elsewhere they join words ("third-to-last")."""
    word = match[1].lower()
    if word in WEEKDAYS or word in MONTHS or word in ("am", "pm", "h", "noon"):
        return match[0]
    return match[1] if word in _PREFIXES else f"{match[1]} "
