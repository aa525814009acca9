import pytest

from scheduler_app.actions.http.response import snippet_of
from scheduler_app.domain.masking import one_line


@pytest.mark.parametrize(
    ("body", "snippet"),
    [
        (b"", ""),
        (b"ok", "ok"),
        ("grüße".encode(), "grüße"),
        (b"a\r\nb\tc\x00d\x1b[31m", "a  b c d [31m"),
        (b"\xff\xfeok", "��ok"),
        ("a\u202eb\u2028c\x85d".encode(), "a b c d"),
        (b"cut \xc3", "cut �"),
    ],
)
def test_a_snippet_is_one_printable_line(body: bytes, snippet: str) -> None:
    assert snippet_of(body) == snippet


def test_a_snippet_is_the_first_kibibyte() -> None:
    assert snippet_of(b"x" * 5000) == "x" * 1024


def test_a_snippet_does_not_blame_the_receiver_for_our_cut() -> None:
    assert snippet_of(b"x" * 1023 + "ü".encode()) == "x" * 1023


def test_a_line_keeps_what_is_printable() -> None:
    assert one_line("https://example.com/ü\r\n") == "https://example.com/ü  "
