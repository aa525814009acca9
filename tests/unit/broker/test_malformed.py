"""What is counted and logged of a message that is dropped."""

from datetime import timedelta
from typing import Any

import pytest
from amqp import Message
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from scheduler_app.broker import malformed
from scheduler_app.broker.malformed import (
    HEAD_LENGTH,
    LINES_A_MINUTE,
    MAX_ID_LENGTH,
    MAX_IDS,
    MAX_MESSAGE_BYTES,
    Malformed,
    check_body,
    check_deliver,
    check_eta,
    check_headers,
    note_dropped,
)
from scheduler_app.broker.rabbitmq import transport as rabbitmq_envelope
from scheduler_app.broker.redis import transport as redis_envelope
from scheduler_app.broker.task import DELIVER
from scheduler_app.clock import clock
from scheduler_app.config import VISIBILITY_TIMEOUT_SECONDS
from tests.held_clock import HeldClock


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(malformed, "_lines", malformed._Lines())


def counted(reason: str) -> float:
    return REGISTRY.get_sample_value("scheduler_messages_dropped_total", {"reason": reason}) or 0.0


def test_a_flood_is_counted_whole_and_logged_in_part() -> None:
    before = counted("not_json")
    with capture_logs() as lines:
        for _ in range(1_000):
            note_dropped(Malformed("not_json", "it is not JSON"), b"x")
        note_dropped(Malformed("envelope", "it is no map"), b"y")
    assert counted("not_json") == before + 1_000
    assert [line["reason"] for line in lines] == ["not_json"] * LINES_A_MINUTE + ["envelope"]


@pytest.mark.parametrize(
    "head", [b"\x1b[31m\n" + b"A" * 10**6, "\u202e\n" + "A" * 10**6, {"a": "\n" * 10**5}]
)
def test_what_is_shown_of_it_is_short_and_cannot_drive_a_terminal(head: object) -> None:
    with capture_logs() as lines:
        note_dropped(Malformed("not_json", "it is not JSON"), head)
    (shown,) = [line["head"] for line in lines]
    assert len(shown) <= HEAD_LENGTH
    assert shown.isascii()
    assert shown.isprintable()


@pytest.mark.parametrize(
    ("seconds", "fits"),
    [
        (-3600, True),
        (60, True),
        (VISIBILITY_TIMEOUT_SECONDS - 0.001, True),
        (VISIBILITY_TIMEOUT_SECONDS, False),
        (VISIBILITY_TIMEOUT_SECONDS + 60, False),
    ],
)
def test_an_eta_that_the_visibility_timeout_would_overtake_is_refused(
    seconds: float, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = HeldClock()
    eta = (held.hold() + timedelta(seconds=seconds)).isoformat()
    monkeypatch.setattr(clock, "now", held)
    if fits:
        check_eta(eta)
    else:
        with pytest.raises(Malformed, match="too far ahead"):
            check_eta(eta)


def test_a_batch_of_the_most_ids_passes_and_one_more_does_not() -> None:
    check_deliver([], {"v": 1, "ids": ["x"] * MAX_IDS})
    with pytest.raises(Malformed):
        check_deliver([], {"v": 1, "ids": ["x"] * (MAX_IDS + 1)})


HEADERS: dict[str, Any] = {"task": DELIVER, "id": "batch"}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"id": "x"},
        {"id": "x" * 255},
        {"retries": 3, "timelimit": [None, 2.5], "eta": "2026-03-02T12:00:00+00:00"},
        {"timelimit": [], "stamps": {}, "ignore_result": True, "expires": None},
    ],
)
def test_headers_as_celery_makes_them_pass(changes: dict[str, Any]) -> None:
    check_headers(HEADERS | changes)


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"task": None}, "its header task is NoneType"),
        ({"id": 5}, "its header id is int"),
        ({"retries": True}, "its header retries is bool"),
        ({"ignore_result": 1}, "its header ignore_result is int"),
        ({"stamps": []}, "its header stamps is list"),
        ({"argsrepr": {}}, "its header argsrepr is dict"),
        ({"id": ""}, "its id is empty or too long"),
        ({"id": "x" * 256}, "its id is empty or too long"),
        ({"timelimit": [1]}, "its time limits are not two numbers"),
        ({"timelimit": [1, "2"]}, "its time limits are not two numbers"),
        ({"timelimit": [1, 2, 3]}, "its time limits are not two numbers"),
    ],
)
def test_headers_that_celery_would_trip_over_are_refused(changes: dict[str, Any], detail: str) -> None:
    with pytest.raises(Malformed, match=detail) as refused:
        check_headers(HEADERS | changes)
    assert (refused.value.reason, str(refused.value)) == ("headers", refused.value.detail)


def test_an_eta_is_an_instant_with_an_offset_or_is_not_given() -> None:
    check_eta(None)
    for eta in ("soon", "2026-03-02T12:00:00"):
        with pytest.raises(Malformed, match="its eta is no instant"):
            check_eta(eta)


def test_a_body_has_a_list_a_map_and_a_map_or_nothing() -> None:
    assert check_body([[1], {"v": 1}, None]) == ([1], {"v": 1})
    assert check_body(((), {}, {"chord": None})) == ((), {})
    bodies: list[tuple[Any, str]] = [
        (None, "has not three parts"),
        ("abc", "has not three parts"),
        ([[], {}], "has not three parts"),
        (["x", {}, None], "positional arguments are no list"),
        ([[], [], None], "named arguments are no map"),
        ([[], {}, []], "third part of its body is no map"),
    ]
    for body, detail in bodies:
        with pytest.raises(Malformed, match=detail) as refused:
            check_body(body)
        assert refused.value.reason == "arguments"


@pytest.mark.parametrize(
    ("args", "kwargs", "reason"),
    [
        ([], {"ids": []}, "arguments"),
        ([], {"v": True, "ids": []}, "arguments"),
        ([], {"v": 2, "ids": []}, "version"),
        ([1], {"v": 1, "ids": []}, "arguments"),
        ([], {"v": 1, "ids": [], "x": 1}, "arguments"),
        ([], {"v": 1}, "arguments"),
        ([], {"v": 1, "ids": "abc"}, "arguments"),
        ([], {"v": 1, "ids": [5]}, "arguments"),
        ([], {"v": 1, "ids": ["x", 5]}, "arguments"),
        ([], {"v": 1, "ids": ["x" * (MAX_ID_LENGTH + 1), "x"]}, "arguments"),
    ],
)
def test_what_our_task_is_not_called_with_is_refused(args: Any, kwargs: dict[str, Any], reason: str) -> None:
    with pytest.raises(Malformed) as refused:
        check_deliver(args, kwargs)
    assert refused.value.reason == reason


def test_our_task_is_called_with_ids_of_a_bounded_length_or_with_none() -> None:
    check_deliver([], {"v": 1, "ids": []})
    check_deliver((), {"v": 1, "ids": ["x" * MAX_ID_LENGTH]})


def test_after_a_minute_there_is_room_for_lines_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr(malformed, "monotonic", lambda: now[0])
    lines = malformed._Lines()
    assert [lines.room("a") for _ in range(LINES_A_MINUTE + 1)] == [True] * LINES_A_MINUTE + [False]
    now[0] += 60
    assert not lines.room("a")
    now[0] += 1
    assert [lines.room("a") for _ in range(LINES_A_MINUTE + 1)] == [True] * LINES_A_MINUTE + [False]


IN_REDIS: dict[str, Any] = {
    "headers": {"task": DELIVER},
    "body": "W10=",
    "properties": {
        "delivery_tag": "tag",
        "body_encoding": "base64",
        "delivery_info": {"exchange": "", "routing_key": "callbacks"},
    },
}
PROPERTIES = IN_REDIS["properties"]


@pytest.mark.parametrize(
    ("payload", "detail"),
    [
        ([], "it is no map"),
        (IN_REDIS | {"properties": []}, "its properties are no map"),
        (IN_REDIS | {"properties": PROPERTIES | {"delivery_tag": ""}}, "its delivery tag is no text"),
        (IN_REDIS | {"properties": PROPERTIES | {"delivery_tag": 5}}, "its delivery tag is no text"),
        (IN_REDIS | {"properties": PROPERTIES | {"delivery_info": None}}, "its delivery info is no map"),
        (
            IN_REDIS | {"properties": PROPERTIES | {"delivery_info": {"exchange": "", "routing_key": 5}}},
            "names no exchange and routing key",
        ),
        (
            IN_REDIS | {"properties": PROPERTIES | {"delivery_info": {"routing_key": "x"}}},
            "names no exchange and routing key",
        ),
        (IN_REDIS | {"headers": None}, "its headers are no map"),
        (IN_REDIS | {"body": 5}, "its body is no text"),
        (IN_REDIS | {"properties": PROPERTIES | {"body_encoding": "hex"}}, "encoded in another way"),
        (IN_REDIS | {"headers": {"compression": "gzip"}}, "it is compressed"),
    ],
)
def test_what_kombu_would_trip_over_in_redis_is_refused(payload: Any, detail: str) -> None:
    with pytest.raises(Malformed, match=detail) as refused:
        redis_envelope.check_envelope(payload)
    assert refused.value.reason == ("compressed" if "compressed" in detail else "envelope")


def test_an_envelope_as_kombu_makes_it_passes() -> None:
    redis_envelope.check_envelope(IN_REDIS)
    redis_envelope.check_envelope(IN_REDIS | {"body": None})
    plain = {name: value for name, value in PROPERTIES.items() if name != "body_encoding"}
    redis_envelope.check_envelope(IN_REDIS | {"properties": plain})


def of_rabbitmq(body: bytes = b"[]", **properties: Any) -> Message:
    given = {"application_headers": {"task": DELIVER}, "content_type": "application/json"}
    return Message(body, **given | properties)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (of_rabbitmq(b"x" * (MAX_MESSAGE_BYTES + 1)), "too_large"),
        (of_rabbitmq(application_headers={}), "envelope"),
        (of_rabbitmq(application_headers={"compression": "gzip"}), "compressed"),
        (of_rabbitmq(content_type="application/x-python-serialize"), "content_type"),
        (Message(b"[]", content_type="application/json"), "envelope"),
    ],
)
def test_what_is_no_task_s_message_in_rabbitmq_is_refused(message: Message, reason: str) -> None:
    with pytest.raises(Malformed) as refused:
        rabbitmq_envelope.check_envelope(message)
    assert refused.value.reason == reason


def test_a_task_s_message_in_rabbitmq_passes_up_to_its_bound() -> None:
    rabbitmq_envelope.check_envelope(of_rabbitmq(b"x" * MAX_MESSAGE_BYTES))
