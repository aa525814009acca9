from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from scheduler_app import __version__
from scheduler_app.actions.http import check_header, headers_for
from scheduler_app.domain.errors import InvalidField

RUN_TIME = datetime(2025, 1, 5, 12, tzinfo=UTC)


def made(**changes: Any) -> dict[str, str]:
    arguments: dict[str, Any] = {
        "event_id": "job-1-20250105T120000Z",
        "schedule_id": "job",
        "run_time": RUN_TIME,
        "attempt": 2,
        "now": RUN_TIME + timedelta(seconds=1.9),
        "user_headers": (),
        "body": None,
    }
    pairs = headers_for(**(arguments | changes))
    assert len({name.lower() for name, _ in pairs}) == len(pairs), "a header is there twice"
    return dict(pairs)


def test_an_attempt_says_what_it_is() -> None:
    assert made() == {
        "User-Agent": f"RRule-Scheduler/{__version__}",
        "Idempotency-Key": "job-1-20250105T120000Z",
        "webhook-id": "job-1-20250105T120000Z",
        "webhook-timestamp": "1736078401",
        "X-Scheduler-Attempt": "2",
        "X-Scheduler-Hops": "1",
        "X-Scheduler-Run-Time": "2025-01-05T12:00:00Z",
        "X-Scheduler-Schedule-Id": "job",
    }


def test_a_callback_counts_one_hop_more_than_the_request_that_led_to_it() -> None:
    assert made(hops=3)["X-Scheduler-Hops"] == "4"


def test_the_run_time_is_in_utc_with_milliseconds_when_there_are_any() -> None:
    east = timezone(timedelta(hours=2))
    run_time = datetime(2025, 1, 5, 14, 0, 0, 250_000, tzinfo=east)
    assert made(run_time=run_time)["X-Scheduler-Run-Time"] == "2025-01-05T12:00:00.250Z"


@pytest.mark.parametrize(
    "name",
    [
        "Idempotency-Key",
        "IDEMPOTENCY-KEY",
        "webhook-id",
        "Webhook-Timestamp",
        "webhook-signature",
        "x-scheduler-attempt",
        "x-scheduler-hops",
        "X-Scheduler-Run-Time",
        "X-Scheduler-Schedule-Id",
    ],
)
def test_a_header_of_ours_replaces_the_users(name: str) -> None:
    assert "forged" not in made(user_headers=[(name, "forged")]).values()


def test_the_users_headers_come_first_and_stay_as_they_are() -> None:
    pairs = headers_for(
        event_id="e",
        schedule_id="s",
        run_time=RUN_TIME,
        attempt=1,
        now=RUN_TIME,
        user_headers={"Authorization": "Bearer x", "user-agent": "mine"},
        body=None,
    )
    assert pairs[:2] == (("Authorization", "Bearer x"), ("user-agent", "mine"))
    assert "User-Agent" not in dict(pairs)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b'{"a": 1}', "application/json"),
        (b" [1, 2]\n", "application/json"),
        (b'{"long": "' + b"a" * 5000 + b'"}', "application/json"),
        (b"a=1&b=2", "text/plain; charset=utf-8"),
        (b"", "text/plain; charset=utf-8"),
        ("grüße".encode(), "text/plain; charset=utf-8"),
        (b"[" * 100_000, "text/plain; charset=utf-8"),
        (b"\xff\xfe\x00", "application/octet-stream"),
        (None, None),
    ],
)
def test_a_body_without_a_type_gets_the_one_it_parses_as(
    body: bytes | None, content_type: str | None
) -> None:
    assert made(body=body).get("Content-Type") == content_type


def test_the_users_content_type_stays() -> None:
    headers = made(body=b"{}", user_headers={"content-type": "application/cloudevents+json"})
    assert headers["content-type"] == "application/cloudevents+json"


@pytest.mark.parametrize(
    ("name", "value"),
    [("X-Token", "a b\tc"), ("Accept", ""), ("X-Name", "grüße"), ("x_y.z~!#$%&'*+^`|", "1")],
)
def test_an_ordinary_header_is_accepted(name: str, value: str) -> None:
    check_header(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("", "x"),
        ("X Y", "x"),
        ("X:", "x"),
        ("X\r\nEvil", "x"),
        ("X\n", "x"),
        ("Größe", "x"),
        ("X", "a\r\nEvil: 1"),
        ("X", "a\nEvil: 1"),
        ("X", "a\rb"),
        ("X", "a\x00b"),
        ("X", "a\x7fb"),
        ("X", "secret\n"),
        ("Content-Length", "5"),
        ("transfer-encoding", "chunked"),
        ("Connection", "close"),
        ("Expect", "100-continue"),
        ("Upgrade", "websocket"),
        ("Proxy-Authorization", "Basic x"),
    ],
)
def test_a_header_that_breaks_the_request_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidField) as refused:
        check_header(name, value)
    assert refused.value.field == "headers"
    assert "secret" not in refused.value.message
