"""A phrase cut into words, numbers, times, dates and marks, and the small pieces that many rules of the
grammar share: numbers, ordinals, units, lengths of time.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from scheduler_app.domain.triggers.phrase.words import (
    AND,
    MONTHS,
    NUMBERS,
    ORDINALS,
    SECONDS_OF,
    UNITS,
    WEEKDAYS,
)

#: A longer phrase is refused: the work of the grammar grows with the length.
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


T = TypeVar("T")
#: What a rule returns: what it read and the position after it, or None.
Found = tuple[T, int] | None


class Tokens:
    """The tokens of a phrase; positions beyond its end hold an empty token."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens

    def __len__(self) -> int:
        return len(self._tokens)

    def at(self, position: int) -> Token:
        return self._tokens[position] if position < len(self._tokens) else Token("end", "", "")

    def text(self, position: int) -> str:
        return self.at(position).text

    def says(self, position: int, words: str) -> int | None:
        """The position after `words` (separated by spaces), if they stand here."""
        for word in words.split():
            if self.text(position) != word:
                return None
            position += 1
        return position

    def any_of(self, position: int, *phrases: str) -> int | None:
        """The position after the first of several that stands here; longer ones come first."""
        for words in phrases:
            if (after := self.says(position, words)) is not None:
                return after
        return None

    def skip(self, position: int, *words: str) -> int:
        """The position after any of these single words, each at most once, in this order."""
        for word in words:
            if self.text(position) == word:
                position += 1
        return position


def joined(tokens: Tokens, position: int) -> int | None:
    """The position after ",", "and", ", and" or "&"."""
    start = position
    while tokens.text(position) in AND and position < start + 2:
        position += 1
    return position if position > start else None


def several(
    tokens: Tokens, position: int, rule: Callable[[Tokens, int], Found[T]], *again: str
) -> Found[tuple[T, ...]]:
    """One or more things that `rule` reads, joined by commas or "and"; the words `again` may stand before
    each but the first."""
    if (first := rule(tokens, position)) is None:
        return None
    found, position = [first[0]], first[1]
    while (after := joined(tokens, position)) is not None:
        if (more := rule(tokens, tokens.skip(after, *again))) is None:
            break
        found.append(more[0])
        position = more[1]
    return tuple(found), position


def number(tokens: Tokens, position: int) -> Found[int]:
    """A whole number in digits or words."""
    return _numeral(tokens, position, "number", NUMBERS)


def ordinal(tokens: Tokens, position: int) -> Found[int]:
    """first, 2nd, twenty-third: counted from the beginning."""
    return _numeral(tokens, position, "ordinal", ORDINALS)


def _numeral(tokens: Tokens, position: int, kind: str, words: Mapping[str, int]) -> Found[int]:
    token = tokens.at(position)
    if token.kind == kind:
        return token.number, position + 1
    two = f"{token.text} {tokens.text(position + 1)}"
    if two in words:
        return words[two], position + 2
    return (words[token.text], position + 1) if token.text in words else None


def signed_ordinal(tokens: Tokens, position: int) -> Found[int]:
    """As `ordinal`, and last, second to last, penultimate: negative, counted from the end."""
    if tokens.text(position) == "last":
        if (after := tokens.any_of(position + 1, "but one")) is not None:
            return -2, after
        return -1, position + 1
    if tokens.text(position) == "penultimate":
        return -2, position + 1
    if (found := ordinal(tokens, position)) is None:
        return None
    from_end = tokens.any_of(found[1], "to last", "to the last", "from last", "last")
    return found if from_end is None else (-found[0], from_end)


def unit(tokens: Tokens, position: int) -> Found[str]:
    """A unit of time. A single letter counts only when it is glued to its number ("30s")."""
    token = tokens.at(position)
    if token.kind != "word" or token.text not in UNITS or (len(token.text) == 1 and not token.glued):
        return None
    return UNITS[token.text], position + 1


def amount(tokens: Tokens, position: int) -> Found[tuple[int, str]]:
    """A number of units; hours, minutes and seconds may be added up and are given in seconds."""
    if (found := _one(tokens, position)) is None:
        return None
    (count, of), position = found
    if of not in SECONDS_OF:
        return found
    total = count * SECONDS_OF[of]
    seen = SECONDS_OF[of]
    while seen > 1:
        if (half := tokens.any_of(position, "and a half")) is not None:
            total, position, seen = total + seen // 2, half, 1
            continue
        after = tokens.says(position, "and")
        more = _one(tokens, position if after is None else after)
        if more is None or SECONDS_OF.get(more[0][1], seen) >= seen:
            break
        (count, of), position = more
        seen = SECONDS_OF[of]
        total += count * seen
    return (total, "second"), position


def _one(tokens: Tokens, position: int) -> Found[tuple[int, str]]:
    if (half := tokens.any_of(position, "half an hour", "half hour", "a half hour")) is not None:
        return (30, "minute"), half
    quarter = tokens.any_of(
        position, "quarter of an hour", "a quarter of an hour", "quarter hour", "a quarter hour"
    )
    if quarter is not None:
        return (15, "minute"), quarter
    if (fortnight := tokens.says(position, "a fortnight")) is not None:
        return (2, "week"), fortnight
    if tokens.text(position) in ("a", "an"):
        of = unit(tokens, position + 1)
        return None if of is None else ((1, of[0]), of[1])
    if tokens.at(position).kind == "dotted":
        return _with_a_half(tokens, position)
    if (count := number(tokens, position)) is None:
        return None
    if (after := tokens.says(count[1], "and a half")) is not None:
        of = unit(tokens, after)
        return None if of is None else _halved(2 * count[0] + 1, of[0], of[1])
    if tokens.text(count[1]) in ("fortnight", "fortnights"):
        return (2 * count[0], "week"), count[1] + 1
    of = unit(tokens, count[1])
    return None if of is None else ((count[0], of[0]), of[1])


def _with_a_half(tokens: Tokens, position: int) -> Found[tuple[int, str]]:
    whole, _, fraction = tokens.text(position).partition(".")
    of = unit(tokens, position + 1)
    return None if of is None or fraction != "5" else _halved(2 * int(whole) + 1, of[0], of[1])


def _halved(halves: int, of: str, position: int) -> Found[tuple[int, str]]:
    smaller = {"hour": (30, "minute"), "minute": (30, "second"), "day": (12, "hour")}.get(of)
    return None if smaller is None else ((halves * smaller[0], smaller[1]), position)
