import pytest

from scheduler_app.actions.http import Guard, check_url
from scheduler_app.domain.errors import InvalidField


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "https://example.com/hook?a=1&b=%20#top",
        "HTTPS://Example.COM:8443/",
        "http://example.com:1/",
        "http://example.com:65535/",
        "http://example.com./",
        "http://my_service:8080/hook",
        "http://a/",
        "http://93.184.216.34/",
        "http://[2606:4700:4700::1111]:8080/",
        "https://xn--bcher-kva.example/",
        "https://example.com/büro?q=ä",
        "https://example.com/a@b?c=d@e",
        # Judged as the address they mean, when the socket is opened.
        "http://2130706433/",
        "http://127.0.0.1/",
        "http://localhost/",
    ],
)
def test_a_url_of_http_with_a_host_is_accepted(url: str) -> None:
    check_url(url)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "absolute URL"),
        ("example.com/hook", "absolute URL"),
        ("//example.com/", "absolute URL"),
        ("http:example.com", "absolute URL"),
        ("http:/example.com", "absolute URL"),
        ("file:///etc/passwd", "must be http or https, not file"),
        ("ftp://example.com/", "not ftp"),
        ("gopher://127.0.0.1:6379/_FLUSHALL", "not gopher"),
        ("dict://127.0.0.1:11211/", "not dict"),
        ("ws://example.com/", "not ws"),
        ("http://", "host is missing"),
        ("http:///path", "host is missing"),
        ("http://:80/", "host is missing"),
        ("http://?q", "host is missing"),
        ("http://user@example.com/", "user or password"),
        ("http://user:secret@example.com/", "user or password"),
        ("http://example.com@127.0.0.1/", "user or password"),
        ("http://example.com\\@127.0.0.1/", "user or password"),
        ("http://example.com\\.evil.test/", "is not a host name"),
        ("http://127.0.0.1%2f@example.com/", "user or password"),
        ("http://%31%32%37.0.0.1/", "is not a host name"),
        ("http://exa mple.com/", "spaces or control"),
        ("http://example.com/a b", "spaces or control"),
        ("http://example.com/\r\nHost: evil", "spaces or control"),
        ("http://example.com/\x00", "spaces or control"),
        ("http://example.com/\x85", "spaces or control"),
        (" http://example.com/", "spaces or control"),
        ("http://example.com:0/", "port"),
        ("http://example.com:65536/", "port"),
        ("http://example.com:/", "port"),
        ("http://example.com:+80/", "port"),
        ("http://example.com:80:80/", "port"),
        ("http://example.com:８０/", "port"),
        ("http://[::1", "closed by ]"),
        ("http://[::1]evil/", "closed by ]"),
        ("http://[::1]:x/", "port"),
        ("http://[nonsense]/", "not an IPv6 address"),
        ("http://[fe80::1%25eth0]/", "zone"),
        ("http://[fe80::1%eth0]/", "zone"),
        ("http://bücher.example/", "xn--bcher-kva.example"),
        ("http://①②⑦.0.0.1/", "ASCII form"),
        ("http://-example.com/", "not a host name"),
        ("http://" + "a" * 254 + "/", "not a host name"),
        ("http://example.com/" + "a" * 8000, "at most 8000"),
    ],
)
def test_a_url_that_cannot_be_a_callback_is_refused_with_its_reason(url: str, reason: str) -> None:
    with pytest.raises(InvalidField) as refused:
        check_url(url)
    assert refused.value.field == "callback_url"
    assert reason in refused.value.message


def test_a_password_in_a_url_is_not_repeated() -> None:
    with pytest.raises(InvalidField) as refused:
        check_url("http://user:hunter2@example.com/")
    assert "hunter2" not in refused.value.message


def test_the_guard_offers_the_same_check() -> None:
    with pytest.raises(InvalidField):
        Guard().check_url("file:///etc/passwd")
