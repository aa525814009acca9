"""Lengths of time: "15 minutes", "an hour and a half", "1h30m", "two weeks"."""

from scheduler_app.domain.triggers.phrase.words import SECONDS_OF

from .cursor import Found, Tokens, number, unit


def amount(tokens: Tokens, position: int) -> Found[tuple[int, str]]:
    """A number of units; hours, minutes and seconds may be added up and are given in seconds."""
    found = _one(tokens, position)
    if found is None:
        return None
    (count, of), position = found
    if of not in SECONDS_OF:
        return found
    total = count * SECONDS_OF[of]
    seen = SECONDS_OF[of]
    while seen > 1:
        half = tokens.any_of(position, "and a half")
        if half is not None:
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
    count = number(tokens, position)
    if count is None:
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
