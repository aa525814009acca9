"""What SMTP_URL may say."""

import pytest

from scheduler_app.domain.mail_server import MailSecurity, MailServer, is_mailbox


def test_the_whole_url_is_read() -> None:
    found = MailServer.parse("smtps://alerts%40example.com:p%2Fw@smtp.example.com:4650")
    assert (found.host, found.port, found.security) == ("smtp.example.com", 4650, MailSecurity.TLS)
    assert (found.user, found.password, found.sender) == ("alerts@example.com", "p/w", "alerts@example.com")
    assert "p/w" not in repr(found)


@pytest.mark.parametrize(
    ("url", "security", "port"),
    [
        ("smtps://h.example.com", MailSecurity.TLS, 465),
        ("smtp://h.example.com", MailSecurity.STARTTLS, 587),
        ("smtp://10.0.0.1:25", MailSecurity.STARTTLS, 25),
        ("smtp://127.0.0.1:25", MailSecurity.PLAIN, 25),
        ("smtp://[::1]", MailSecurity.PLAIN, 587),
        ("smtp://localhost", MailSecurity.PLAIN, 587),
        ("smtp://localhost.example.com", MailSecurity.STARTTLS, 587),
    ],
)
def test_only_loopback_is_spoken_to_in_the_clear(url: str, security: MailSecurity, port: int) -> None:
    found = MailServer.parse(f"{url}?from=a@example.com")
    assert (found.security, found.port) == (security, port)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mail.example.com", "must be smtps://"),
        ("https://s3cret@mail.example.com", "must be smtps://"),
        ("smtps://u:s3cret@", "must be smtps://"),
        ("smtps://u:s3cret@h/path?from=a@b.c", "must be smtps://"),
        ("smtps://u:s3cret@h", "from whom"),
        ("smtps://h?from=Ops+<a@b.c>", "from whom"),
        ("smtps://h?from=a@b.c&starttls=no", "not known"),
        ("smtps://u:s3/cret@h", "port"),
        ("smtps://u:p@h:s3cret", "port"),
    ],
)
def test_what_cannot_be_used_is_refused_without_its_password(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        MailServer.parse(url)
    assert "s3" not in str(refused.value)


@pytest.mark.parametrize("text", ["ops@example.com", "o'p+s=1@h", "a@" + "b." * 20 + "c"])
def test_a_mailbox_is_one_address(text: str) -> None:
    assert is_mailbox(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "ops", "@h", "a@", "a@b c", "a b@h", "Ops <ops@h>", "a@h, b@h", "a@h\r\nBcc: b@h", "a@h\n"),
        *("é@h", "a@é", '"a b"@h', "a@-h", "a@h..c", "a@" + "b" * 300),
    ],
)
def test_whatever_else_is_none(text: str) -> None:
    assert not is_mailbox(text)
