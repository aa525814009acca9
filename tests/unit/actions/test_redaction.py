"""What came back is kept without the secrets that were sent."""

import html
import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from urllib.parse import quote, quote_plus, unquote_plus

import pytest

from scheduler_app.actions.http import Request, Response, redacted, response
from scheduler_app.actions.http.response import snippet_of
from scheduler_app.domain.http_action import BodyKind, HttpAction, RequestBody
from scheduler_app.domain.masking import MASK

TOKEN = 'sk/live+"<4711>&é?~'
PASSWORD = "correct horse"
ACTION = HttpAction(
    url=f"https://example.com/hook?plain=query-secret&coded={quote(TOKEN, safe='')}",
    headers=(
        ("Authorization", "Bearer header-secret"),
        ("X-Basic", "Basic " + b64encode(f"user:{PASSWORD}".encode()).decode()),
        ("Cookie", "a=1; session=cookie-secret"),
        ("X-Key", TOKEN),
        ("Accept", "text/plain"),
        ("X-Short", "abc"),
    ),
    body=RequestBody.from_json(
        {"user": "anne", "deep": [{"password": "body-secret"}], "pin": 135790, "ok": True}
    ),
)


def answer(snippet: str, error: str | None = None, location: str | None = None) -> Response:
    return Response("k", 400, error, False, None, location, snippet, 1.0)


@pytest.mark.parametrize(
    "secret", ["header-secret", PASSWORD, "cookie-secret", TOKEN, "query-secret", "body-secret", "135790"]
)
def test_an_echo_of_a_secret_is_masked_in_every_form(secret: str) -> None:
    data = secret.encode()
    forms = [
        secret,
        quote(secret, safe=""),
        quote(secret, safe="").lower(),
        quote_plus(secret),
        html.escape(secret),
        json.dumps(secret),
        *(b64encode(b"x" * before + data + b"yy").decode() for before in range(4)),
        urlsafe_b64encode(data).decode(),
    ]
    for form in forms:
        kept = redacted(answer(f"You sent {form}."), ACTION)
        assert MASK in kept.snippet, form
        assert form not in kept.snippet
    assert redacted(answer("", f"redirect to /?t={secret} not followed", secret), ACTION) == answer(
        "", f"redirect to /?t={MASK} not followed", MASK
    )


def test_an_echo_of_the_whole_request_keeps_nothing_of_it() -> None:
    body = ACTION.body.data if ACTION.body else b""
    echo = json.dumps({"headers": dict(ACTION.headers), "url": ACTION.url, "body": body.decode()})
    kept = redacted(answer(echo), ACTION).snippet
    for secret in ("header-secret", "cookie-secret", "live", "query-secret", "body-secret", "135790"):
        assert secret not in kept
    assert '"Accept": "text/plain"' in kept
    assert '"X-Short": "abc"' in kept, "what is as short as that stands in any text"


def test_a_secret_that_the_end_of_the_snippet_cuts_off_is_masked() -> None:
    for sent in range(4, len("header-secret")):
        echo = "x" * (1023 - sent) + " " + "header-secret"
        kept = redacted(answer(snippet_of(echo.encode())), ACTION).snippet
        assert kept.endswith(MASK)
        assert kept.strip("x") == f" {MASK}"


def test_an_answer_without_secrets_is_left_as_it_is() -> None:
    for text in (
        "",
        "ok",
        '{"ok": true}',
        "Accepted: order 12, 100% + more &amp; QWxhZGRpbjpvcGVu \\u00e9 \\",
        "x" * 1024,
    ):
        assert redacted(answer(text, "HTTP 400"), ACTION) == answer(text, "HTTP 400")
    nothing_sent = HttpAction("https://example.com/", headers=(("Accept", "text/plain"),))
    assert redacted(answer("text/plain"), nothing_sent).snippet == "text/plain"


def test_a_large_or_odd_body_is_looked_through_within_bounds() -> None:
    large = RequestBody.from_json([{"n": n, "secret": f"secret-{n:06}"} for n in range(8_000)])
    text = RequestBody(
        BodyKind.TEXT, b"first=form-secret&second=2\n" + b"x" * 200_000 + b"\nlast-line-secret"
    )
    binary = RequestBody(BodyKind.BASE64, b"\x00\xff\xfe" * 100)
    assert MASK in redacted(answer("got secret-000001"), HttpAction("http://h/", body=large)).snippet
    assert MASK in redacted(answer("got form-secret"), HttpAction("http://h/", body=text)).snippet
    assert MASK in redacted(answer("got last-line-secret"), HttpAction("http://h/", body=text)).snippet
    echoed = b64encode(binary.data).decode()
    assert redacted(answer(echoed), HttpAction("http://h/", body=binary)).snippet == MASK


def test_a_request_is_shown_without_what_is_secret_of_it() -> None:
    shown = repr(Request("k", ACTION.url, "POST", ACTION.headers, b"body-secret", 1.0))
    assert "secret" not in shown


@pytest.mark.parametrize(
    "body", [b"&a=bcdefgh" * 24_000, b"abcdefgh\n" * 28_000, b"[" + b'"abcdefgh",' * 22_000 + b"1]"]
)
def test_a_large_body_is_not_read_for_longer_than_a_bound_and_not_for_each_answer(
    body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[str] = []
    worth = response._worth

    def counted(least: int, *values: str) -> Iterator[str]:
        looked_at.extend(values)
        return worth(least, *values)

    def unquoted(text: str) -> str:
        looked_at.append(text)
        return unquote_plus(text)

    monkeypatch.setattr(response, "unquote_plus", unquoted)
    monkeypatch.setattr(response, "_worth", counted)
    action = HttpAction("http://a.test/", "POST", body=RequestBody(BodyKind.TEXT, body))
    for _ in range(3):
        assert MASK in redacted(answer("abcdefgh"), action).snippet
    assert len(looked_at) <= 2 * response.MAX_BODY_VALUES + 2
