"""A message: its id, its time, its content."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import from_id
from scheduler_app.domain.http_action import HttpAction, RequestBody, http_action
from scheduler_app.domain.ids import (
    TENANT,
    event_id,
    is_message,
    manual_event_id,
    message_event_id,
    message_id_of,
    schedule_of,
    tenant_of,
)
from scheduler_app.domain.masking import MASK
from scheduler_app.domain.message import Message, Timing
from scheduler_app.domain.message_draft import MessageDraft
from scheduler_app.domain.retry import RetryPolicy
from scheduler_app.domain.schedule_draft import ScheduleDraft

NOW = datetime(2026, 3, 2, 12, 0, 0, 123_456, tzinfo=UTC)
URL = "http://a.test/?token=secret"


def made(**fields: Any) -> Message:
    own = {name: fields.pop(name) for name in ("event_name", "metadata", "timing") if name in fields}
    return MessageDraft(draft=ScheduleDraft(url=URL, **fields), **own).message(TENANT, max_retries=3)


@pytest.mark.parametrize("tenant", [TENANT, "acme"])
@pytest.mark.parametrize(
    "message_id", ["a", "550e8400-e29b-41d4-a716-446655440000", "1-20250105T120000Z", "x-manual-0a", "msg_a"]
)
def test_an_event_s_id_tells_the_message_and_its_tenant(message_id: str, tenant: str) -> None:
    made = message_event_id(tenant, message_id)
    assert (message_id_of(made), tenant_of(made), is_message(made)) == (message_id, tenant, True)
    assert schedule_of(made) == ""


def test_a_message_s_id_cannot_name_another_tenant() -> None:
    assert tenant_of(message_event_id(TENANT, "acme:x")) == TENANT


@pytest.mark.parametrize("schedule_id", ["msg", "msg-a", "acme:msg"])
def test_no_schedule_has_an_event_with_the_id_of_a_message(schedule_id: str) -> None:
    for of_a_schedule in (event_id(schedule_id, 1, NOW), manual_event_id(schedule_id)):
        assert not is_message(of_a_schedule)
        assert schedule_of(of_a_schedule) == schedule_id
    assert from_id(message_event_id(TENANT, "1-20250105T120000Z")) is None


@pytest.mark.parametrize(
    ("timing", "instant"),
    [
        (Timing(), NOW),
        (Timing(delay_seconds=90), NOW + timedelta(seconds=90)),
        (Timing(delay_seconds=0.25), NOW + timedelta(milliseconds=250)),
        (Timing(scheduled_at=NOW - timedelta(days=1)), NOW - timedelta(days=1)),
        (
            Timing(scheduled_at=NOW.replace(year=2070).astimezone(timezone(timedelta(hours=1)))),
            NOW.replace(year=2070),
        ),
    ],
)
def test_a_message_is_due_at_an_instant_or_after_a_delay_or_at_once(
    timing: Timing, instant: datetime
) -> None:
    assert timing.instant(NOW) == instant.replace(microsecond=instant.microsecond // 1000 * 1000)


@pytest.mark.parametrize(
    ("timing", "field"),
    [
        (Timing(NOW, 5.0), "delay_seconds"),
        (Timing(delay_seconds=-1), "delay_seconds"),
        (Timing(delay_seconds=1e12), "delay_seconds"),
        (Timing(scheduled_at=NOW.replace(year=9998)), "scheduled_at"),
        (Timing(scheduled_at=NOW.replace(year=1969)), "scheduled_at"),
    ],
)
def test_a_time_that_cannot_be_stored_or_is_given_twice_is_refused(timing: Timing, field: str) -> None:
    with pytest.raises(InvalidField) as refused:
        timing.instant(NOW)
    assert refused.value.field == field


def test_a_message_is_posted_unless_it_says_otherwise() -> None:
    assert http_action(made().action).method == "POST"
    assert http_action(made(method="GET").action).method == "GET"


def test_metadata_travel_as_headers_and_are_told_from_them() -> None:
    message = made(headers=(("X-Own", "1"),), metadata=(("trace", "t1"), ("user", "u1")))
    assert http_action(message.action).headers == (
        ("X-Own", "1"),
        ("X-Scheduler-Metadata-trace", "t1"),
        ("X-Scheduler-Metadata-user", "u1"),
    )
    assert message.headers == (("X-Own", "1"),)
    assert message.metadata == (("trace", "t1"), ("user", "u1"))


def test_headers_and_metadata_share_one_bound() -> None:
    headers = tuple((f"X-{number}", "1") for number in range(30))
    metadata = tuple((f"m{number}", "1") for number in range(21))
    assert made(headers=headers, metadata=metadata[:20])
    with pytest.raises(InvalidField, match="50"):
        made(headers=headers, metadata=metadata)


def test_a_mask_stands_for_nothing_in_a_new_message() -> None:
    for fields in ({"metadata": (("trace", MASK),)}, {"headers": (("X-Own", MASK),)}):
        with pytest.raises(InvalidField, match="mask"):
            made(**fields)


@pytest.mark.parametrize(
    "other",
    [
        {"event_name": "b"},
        {"timing": Timing(delay_seconds=6)},
        {"metadata": (("trace", "t2"),)},
        {"headers": (("X-Own", "2"),)},
        {"body": RequestBody.from_json({"a": 2})},
        {"max_retries": 4},
        {"timeout_seconds": 5.0},
        {"method": "PUT"},
        {"signing": True},
    ],
)
def test_messages_differ_by_what_they_deliver_and_when(other: dict[str, Any]) -> None:
    fields: dict[str, Any] = {
        "event_name": "a",
        "timing": Timing(delay_seconds=5),
        "metadata": (("trace", "t1"),),
        "body": RequestBody.from_json({"a": 1}),
    }
    assert made(**fields).same_content(made(**fields))
    assert made(**fields).same_content(made(**fields | other)) is ("signing" in other)


def test_of_a_wiped_message_what_is_left_is_compared() -> None:
    wiped = Message(action=HttpAction("http://a.test/", "POST"), retry=RetryPolicy(max_retries=3), wiped=True)
    assert made(headers=(("X-Own", "1"),), body=RequestBody.from_json(1)).same_content(wiped)
    assert not made(event_name="a").same_content(wiped)


def test_nothing_secret_is_in_a_repr() -> None:
    draft = MessageDraft(
        metadata=(("k", "metadata-secret"),),
        draft=ScheduleDraft(
            url=URL, headers=(("K", "header-secret"),), body=RequestBody.from_json("body-secret")
        ),
    )
    assert "secret" not in repr(draft) + repr(draft.message(TENANT, max_retries=1))
