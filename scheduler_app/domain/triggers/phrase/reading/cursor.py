"""What the rules of the grammar read from: tokens by position, and the small pieces that many rules share."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from scheduler_app.domain.triggers.phrase.tokens import Token
from scheduler_app.domain.triggers.phrase.words import AND, NUMBERS, ORDINALS, UNITS

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


def several(tokens: Tokens, position: int, rule: Callable[[Tokens, int], Found[T]]) -> Found[tuple[T, ...]]:
    """One or more things that `rule` reads, joined by commas or "and"."""
    first = rule(tokens, position)
    if first is None:
        return None
    found, position = [first[0]], first[1]
    while (after := joined(tokens, position)) is not None:
        more = rule(tokens, after)
        if more is None:
            break
        found.append(more[0])
        position = more[1]
    return tuple(found), position


def number(tokens: Tokens, position: int) -> Found[int]:
    """A whole number in digits or words."""
    token = tokens.at(position)
    if token.kind == "number":
        return token.number, position + 1
    two = f"{token.text} {tokens.text(position + 1)}"
    if two in NUMBERS:
        return NUMBERS[two], position + 2
    return (NUMBERS[token.text], position + 1) if token.text in NUMBERS else None


def ordinal(tokens: Tokens, position: int) -> Found[int]:
    """first, 2nd, twenty-third: counted from the beginning."""
    token = tokens.at(position)
    if token.kind == "ordinal":
        return token.number, position + 1
    two = f"{token.text} {tokens.text(position + 1)}"
    if two in ORDINALS:
        return ORDINALS[two], position + 2
    return (ORDINALS[token.text], position + 1) if token.text in ORDINALS else None


def signed_ordinal(tokens: Tokens, position: int) -> Found[int]:
    """As `ordinal`, and last, second to last, penultimate: negative, counted from the end."""
    if tokens.text(position) == "last":
        if (after := tokens.any_of(position + 1, "but one")) is not None:
            return -2, after
        return -1, position + 1
    if tokens.text(position) == "penultimate":
        return -2, position + 1
    found = ordinal(tokens, position)
    if found is None:
        return None
    from_end = tokens.any_of(found[1], "to last", "to the last", "from last", "last")
    return found if from_end is None else (-found[0], from_end)


def unit(tokens: Tokens, position: int) -> Found[str]:
    """A unit of time. A single letter counts only when it is glued to its number ("30s")."""
    token = tokens.at(position)
    if token.kind != "word" or token.text not in UNITS or (len(token.text) == 1 and not token.glued):
        return None
    return UNITS[token.text], position + 1
