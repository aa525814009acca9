"""What is kept of what a command prints."""

from scheduler_app.actions.command.running import KEPT_BYTES, Output


def printed(*parts: bytes, secrets: tuple[str, ...] = ()) -> str:
    output = Output()
    for part in parts:
        output.add(part)
    return output.text(secrets)


def test_a_little_is_kept_as_it_is() -> None:
    assert printed(b"one\n", b"two\n") == "one\ntwo\n"


def test_of_much_the_beginning_and_the_end_are_kept() -> None:
    text = printed(b"first", *[b"x" * 60_000] * 20, b"last")
    assert text.startswith("firstx")
    assert text.endswith("xlast")
    left_out = 20 * 60_000 + 9 - 2 * KEPT_BYTES
    assert f"\n[{left_out} bytes left out]\n" in text
    assert len(text) == 2 * KEPT_BYTES + len(f"\n[{left_out} bytes left out]\n")


def test_what_is_no_text_takes_no_more_room() -> None:
    for byte in (b"\xff", b"\x1b", b"\0"):
        assert len(printed(byte * 300_000).encode()) <= 2 * KEPT_BYTES + 100


def test_secrets_are_masked_also_where_the_cut_divides_them() -> None:
    secret = "abcdefgh"
    assert printed(b"it is abcdefgh!", secrets=(secret,)) == "it is ********!"
    for shift in range(len(secret)):
        data = b"-" * (KEPT_BYTES - shift) + secret.encode() + b"." * 100_000 + secret.encode()
        data += b"-" * (KEPT_BYTES - shift)
        text = printed(data, secrets=(secret,))
        head, _, tail = text.partition("\n[")
        assert not head.rstrip("*").endswith(("a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg"))
        end = tail.partition("]\n")[2]
        assert not end.lstrip("*").startswith(("b", "c", "d", "e", "f", "g", "h"))
