"""What people may see of a text: secrets are masked, and so are characters that change what a reader sees.

Secret are header values, but for a few names that never carry one, the body, and the values of the URL's
query. Whoever reads an answer cannot read them, nor send them anywhere else: a mask that comes back stands
for the value that is stored, and that stays with the origin it was given for.

C0 and C1 controls begin escape sequences and forge lines; the bidirectional controls of Unicode (UAX #9) show
text in another order than it has; U+2028 and U+2029 end a line for some readers. What joins letters and emoji
(U+200C, U+200D) is ordinary text and not among them.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import count

MASK = "********"
MASKED_BODY = MASK.encode()

#: Names whose values say how to read a message, and nothing of who sends it.
HARMLESS = frozenset(
    (
        *("accept", "accept-charset", "accept-encoding", "accept-language", "cache-control"),
        *("content-disposition", "content-encoding", "content-language", "content-type"),
        *("pragma", "prefer", "user-agent"),
    )
)
_CREDENTIAL = re.compile(
    r"auth|cookie|token|secret|passw|pwd|credential|signature|session|key|jwt|bearer|sas\b|cert",
    re.IGNORECASE,
)
_QUERY = re.compile(r"[?#]")

Headers = tuple[tuple[str, str], ...]


def is_secret(header_name: str) -> bool:
    """Whether the value of a header of this name is kept and shown as a secret."""
    return header_name.lower() not in HARMLESS


def is_credential(header_name: str) -> bool:
    """Whether a header of this name tells a receiver, as a rule, who is calling."""
    return _CREDENTIAL.search(header_name) is not None


def masked(headers: Headers) -> Headers:
    """The headers as they may be shown."""
    return tuple((name, MASK if is_secret(name) else value) for name, value in headers)


def unmasked(headers: Headers, known: Headers) -> Headers:
    """Headers that came back from a reader: a mask means unchanged. Raises KeyError(header's name)."""
    values = {name.lower(): value for name, value in known}

    def real(name: str, value: str) -> str:
        if value != MASK or not is_secret(name):
            return value
        if name.lower() not in values:
            raise KeyError(name)
        return values[name.lower()]

    return tuple((name, real(name, value)) for name, value in headers)


def masked_names(headers: Headers) -> list[str]:
    """The headers that came back with a mask in place of their value."""
    return [name for name, value in headers if value == MASK and is_secret(name)]


def split_query(url: str) -> tuple[str, str]:
    """The URL up to its query, and the rest: query and fragment with their marks, "" where there is none."""
    found = _QUERY.search(url)
    start = found.start() if found else len(url)
    return url[:start], url[start:]


def masked_url(url: str) -> str:
    """The URL as it may be shown: the names of its query's parameters, and not their values."""
    base, _ = split_query(url)
    return base + "".join(
        mark + name + (MASK if value else "") for mark, name, value in _parameters(url[len(base) :])
    )


def unmasked_url(url: str, known: str) -> str:
    """A URL that came back from a reader: a mask means unchanged, for parameters told by their name and, of
    several with one name, by their order. Raises KeyError(parameter's name, "" for one without)."""
    base, rest = split_query(url)
    if MASK not in rest:
        return url
    values = {key: value for key, (_, _, value) in _numbered(_parameters(split_query(known)[1]))}
    whole = [base]
    for key, (mark, name, value) in _numbered(_parameters(rest)):
        if value == MASK:
            if key not in values:
                raise KeyError(name.rstrip("="))
            value = values[key]
        whole.append(mark + name + value)
    return "".join(whole)


def has_masked_query(url: str) -> bool:
    """Whether a value in the query, or the fragment, is a mask."""
    return any(value == MASK for _, _, value in _parameters(split_query(url)[1]))


def query_values(url: str) -> list[str]:
    """The values in the query, percent-encoded as they are written; a part without a name is a value."""
    return [value for mark, _, value in _parameters(split_query(url)[1]) if value and mark != "#"]


_Parameter = tuple[str, str, str]


def _parameters(rest: str) -> Iterator[_Parameter]:
    """The mark before each parameter (`?`, `&`, `#`), its name with the `=`, its value."""
    query, hash_mark, fragment = rest.partition("#")
    mark = "?"
    for part in query[1:].split("&") if query else ():
        name, equals, value = part.partition("=")
        yield (mark, name + equals, value) if equals else (mark, "", part)
        mark = "&"
    if hash_mark:
        yield "#", "", fragment


def _numbered(parameters: Iterable[_Parameter]) -> Iterator[tuple[tuple[str, int], _Parameter]]:
    """Each with its name and its number among those of that name; the fragment is told by its mark."""
    counters: dict[str, Iterator[int]] = {}
    for parameter in parameters:
        name = "#" if parameter[0] == "#" else parameter[1]
        yield (name, next(counters.setdefault(name, count()))), parameter


_BIDI_AND_LINES = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_CONTROL = re.compile(f"[\x00-\x1f\x7f-\x9f{_BIDI_AND_LINES}]")
_CONTROL_BUT_LAYOUT = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI_AND_LINES}]")


def control_in(text: str) -> str | None:
    """The first control character of `text` as `U+001B`, line ends and tabs included; None without any."""
    found = _CONTROL.search(text)
    return f"U+{ord(found[0]):04X}" if found else None


def visible(text: str) -> str:
    """`text` with `\\u001b` for each control character but line feeds and tabs, which lay text out.

    In a string of JSON that is an escape, so that JSON keeps its meaning.
    """
    return _CONTROL_BUT_LAYOUT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """Returns `text` with a space for every character that is not printable.

    A receiver chooses this text, and people read it in logs and terminals: a line end could forge a log line,
    an escape sequence could drive the terminal, a bidirectional mark could show other words than there are.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text)
