"""Characters that a reader does not see, and that change what he sees: terminal escapes, bidirectional marks.

C0 and C1 controls begin escape sequences and forge lines; the bidirectional controls of Unicode (UAX #9) show
text in another order than it has; U+2028 and U+2029 end a line for some readers. What joins letters and emoji
(U+200C, U+200D) is ordinary text and not among them.
"""

import re

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
