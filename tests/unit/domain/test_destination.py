"""What a destination makes of the requests of those that name it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from scheduler_app.domain.action import CALLBACKS
from scheduler_app.domain.celery_task_action import CeleryTaskAction
from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.destination import (
    Auth,
    AuthType,
    Breaker,
    Destination,
    DestinationDraft,
    joined,
)
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.http_action import BodyKind, HttpAction, RequestBody, http_action
from scheduler_app.domain.masking import MASK
from scheduler_app.domain.message import Message
from scheduler_app.domain.retry import Codes, RetryPolicy
from tests.builders import message, schedule

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
TEXT = RequestBody(BodyKind.TEXT, b"x")


def destination(**fields: Any) -> Destination:
    given: dict[str, Any] = {"id": "d", "url": "https://a.test/base", "created_at": NOW, "updated_at": NOW}
    return Destination(**given | fields)


def asked(url: str = "", **fields: Any) -> HttpAction:
    return HttpAction(**{"url": url, "destination": "d", "method": ""} | fields)


@pytest.mark.parametrize(
    ("own", "of_destination", "default", "body", "method"),
    [
        ("PUT", "PATCH", "DELETE", TEXT, "PUT"),
        ("", "PATCH", "DELETE", TEXT, "PATCH"),
        ("", None, "DELETE", TEXT, "DELETE"),
        ("", None, None, TEXT, "POST"),
        ("", None, None, None, "GET"),
    ],
)
def test_the_method_is_the_nearest_one_that_is_given(
    own: str, of_destination: str | None, default: str | None, body: RequestBody | None, method: str
) -> None:
    made = destination(method=of_destination).action(asked(method=own, body=body), default_method=default)
    assert made.method == method


def test_a_method_that_is_not_allowed_is_refused_and_those_allowed_are_named() -> None:
    made = destination(id="team:d", allowed_methods=("POST", "PUT"))
    assert made.action(asked(method="PUT")).method == "PUT"
    with pytest.raises(InvalidField, match=r"the destination d allows POST, PUT, and not GET") as refused:
        made.action(asked())
    assert refused.value.field == "method"


def test_headers_of_a_request_replace_those_of_the_destination_but_not_its_credentials() -> None:
    made = destination(headers=(("X-One", "1"), ("X-Two", "2")), auth=Auth(AuthType.BEARER, "token"))
    found = made.action(asked(headers=(("x-two", "own"), ("Authorization", "own"), ("X-Three", "3"))))
    assert found.headers == (
        *(("X-One", "1"), ("x-two", "own")),
        *(("Authorization", "Bearer token"), ("X-Three", "3")),
    )
    without = replace(made, auth=None).action(asked(headers=(("Authorization", "own"),)))
    assert ("Authorization", "own") in without.headers


def test_basic_credentials_are_encoded_with_the_name() -> None:
    # The example of RFC 7617, section 2.
    auth = Auth(AuthType.BASIC, "open sesame", username="Aladdin")
    assert auth.header() == ("Authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
    assert "sesame" not in repr(auth)


@pytest.mark.parametrize(
    ("base", "path", "whole"),
    [
        ("https://a.test/base/", "", "https://a.test/base/"),
        ("https://a.test/base/", "/x", "https://a.test/base/x"),
        ("https://a.test/base/", "?b=2", "https://a.test/base/?b=2"),
        ("https://a.test/base?a=1", "/x?b=2", "https://a.test/base/x?a=1&b=2"),
        ("https://a.test/base?a=1", "/x", "https://a.test/base/x?a=1"),
        ("https://a.test/base?", "/x?", "https://a.test/base/x"),
        ("https://a.test/base?a", "?b", "https://a.test/base?a&b"),
    ],
)
def test_path_follows_path_and_query_follows_query(base: str, path: str, whole: str) -> None:
    assert joined(base, path) == whole
    assert destination(url=base).action(asked(path)).url == whole


def test_what_a_destination_says_of_delivery_holds_for_a_schedule_and_the_rest_is_the_schedule_s() -> None:
    own = schedule(NOW)
    own = replace(own, action=asked("/x"), timeout_seconds=7.0)
    policy = own.retry
    plain = destination().applied_to(own)
    assert http_action(plain.action).url == "https://a.test/base/x"
    assert (plain.retry, plain.success, plain.timeout_seconds, plain.signing) == (
        *(policy, own.success, 7.0, own.signing),
    )
    codes, success, signing = Codes((500,)), Codes((202,)), Signing("whsec_c2VjcmV0", NOW)
    full = destination(
        max_retries=0, retry_codes=codes, success=success, timeout_seconds=3.0, signing=signing
    ).applied_to(own)
    assert full.retry == replace(policy, max_retries=0, codes=codes)
    assert (full.success, full.timeout_seconds, full.signing) == (success, 3.0, signing)


@pytest.mark.parametrize(
    ("first", "longest", "expected"),
    [
        (None, None, (10.0, 60.0)),
        (0.0, None, (0.0, 60.0)),
        (20.0, 15.0, (20.0, 20.0)),
        (None, 5.0, (10.0, 10.0)),
    ],
)
def test_the_longest_backoff_is_never_shorter_than_the_first(
    first: float | None, longest: float | None, expected: tuple[float, float]
) -> None:
    own = schedule(NOW)
    own = replace(own, retry=RetryPolicy(max_retries=4, backoff_seconds=10.0, backoff_max_seconds=60.0))
    found = destination(backoff_seconds=first, backoff_max_seconds=longest).applied_to(own).retry
    assert (found.backoff_seconds, found.backoff_max_seconds, found.max_retries) == (*expected, 4)


def test_a_message_is_posted_where_nobody_says_how() -> None:
    content = message(NOW).message
    assert isinstance(content, Message)
    content = replace(content, action=asked("/x"))
    assert http_action(destination().applied_to(content).action).method == "POST"
    assert http_action(destination(method="PUT").applied_to(content).action).method == "PUT"


def test_only_a_callback_names_a_destination() -> None:
    task = CeleryTaskAction(broker="b", task="t")
    assert task.destination is None
    with pytest.raises(TypeError, match="celery_task"):
        destination().applied_to(replace(schedule(NOW), action=task))


@pytest.mark.parametrize(
    ("fields", "limited"),
    [
        ({}, False),
        ({"rate_per_second": 1.0}, True),
        ({"concurrency": 1}, True),
        ({"breaker": Breaker(1, 1.0)}, True),
        ({"paused": True}, True),
        ({"burst": 9, "queue": "slow"}, False),
    ],
)
def test_an_attempt_may_have_to_wait_only_where_a_limit_is_set(
    fields: dict[str, Any], *, limited: bool
) -> None:
    assert destination(**fields).is_limited is limited


def test_its_queue_is_for_those_that_name_none_of_their_own() -> None:
    assert destination(queue="slow").queue_for("own") == "own"
    assert destination(queue="slow").queue_for(CALLBACKS) == "slow"
    assert destination().queue_for(CALLBACKS) == CALLBACKS


def test_its_name_is_without_that_of_its_tenant() -> None:
    made = destination(id="team:d")
    assert (made.name, made.tenant, made.whose) == ("d", "team", "the destination d")
    assert "a.test" not in repr(made)


@pytest.mark.parametrize(
    ("auth", "what"),
    [
        (Auth(AuthType.BEARER, "secret"), "token"),
        (Auth(AuthType.BASIC, "secret", username="bob"), "password"),
    ],
)
def test_a_secret_that_has_to_be_given_again_is_called_as_its_field_is(auth: Auth, what: str) -> None:
    elsewhere = DestinationDraft(url="https://b.test/base")
    with pytest.raises(InvalidField, match=f"give its {what} again"):
        elsewhere.edit(destination(auth=auth), NOW)
    masked = DestinationDraft(auth=replace(auth, secret=MASK))
    with pytest.raises(InvalidField, match=f"its {what} is masked"):
        masked.edit(destination(), NOW)
