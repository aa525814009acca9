"""What a receiver accepts and what it refuses."""

from datetime import timedelta

import pytest
from standardwebhooks.webhooks import Webhook

from scheduler_app.receiver import Answer, Delivery, Receiver
from tests.unit.receiver.signed import BODY, NOW, OTHER, SECRET, headers


def refusal(given: object, body: bytes = BODY, **options: object) -> Answer:
    verdict = Receiver(SECRET, **options).verdict(given, body, now=NOW)  # type: ignore[arg-type]
    assert isinstance(verdict, Answer)
    return verdict


def test_a_callback_of_the_scheduler_is_accepted_with_what_it_says() -> None:
    delivery = Receiver(SECRET).verdict(headers(), BODY, now=NOW)
    assert isinstance(delivery, Delivery)
    assert (delivery.key, delivery.sent_at, delivery.body) == ("s-1-20260302T120000Z", NOW, BODY)
    assert (delivery.schedule_id, delivery.run_time, delivery.attempt, delivery.hops) == ("s", NOW, 2, 1)
    assert delivery.json() == {"full": True}
    assert delivery.headers["x-team"] == "ops"


def test_what_another_sender_of_standard_webhooks_signs_is_accepted() -> None:
    signature = Webhook(SECRET).sign("msg_1", NOW, BODY.decode())
    given = {"webhook-id": "msg_1", "webhook-timestamp": str(int(NOW.timestamp()))}
    delivery = Receiver(SECRET).verdict({**given, "webhook-signature": signature}, BODY, now=NOW)
    assert isinstance(delivery, Delivery)
    assert (delivery.schedule_id, delivery.run_time, delivery.attempt, delivery.hops) == (None, None, 1, 0)


@pytest.mark.parametrize(
    ("senders", "receivers"),
    [((SECRET, OTHER), (SECRET,)), ((OTHER, SECRET), (SECRET,)), ((SECRET,), (OTHER, SECRET))],
)
def test_during_a_rotation_one_signature_by_one_secret_suffices(
    senders: tuple[str, ...], receivers: tuple[str, ...]
) -> None:
    assert isinstance(Receiver(receivers).verdict(headers(secrets=senders), BODY, now=NOW), Delivery)


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-id": "s-1-20260303T120000Z"},
        {"webhook-id": ""},
        {"webhook-id": "x" * 10_000},
        {"webhook-timestamp": str(int(NOW.timestamp()) + 1)},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": "-1"},
        {"webhook-timestamp": "9" * 5_000},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1,\u0142\xe9"},
        {"webhook-signature": "v1a," + "b" * 44},
    ],
)
def test_whatever_is_signed_otherwise_is_refused(change: dict[str, str]) -> None:
    assert refusal(headers() | change).status == 401


def test_another_body_another_secret_and_no_headers_are_refused() -> None:
    assert refusal(headers(), b'{"full": false}').status == 401
    assert refusal(headers(secrets=(OTHER,))).status == 401
    assert refusal(headers(secrets=())).status == 401
    assert refusal({}).status == 401


def test_a_key_that_is_not_signed_does_not_take_the_place_of_the_one_that_is() -> None:
    given = headers() | {"Idempotency-Key": "another"}
    delivery = Receiver(SECRET).verdict(given, BODY, now=NOW)
    assert isinstance(delivery, Delivery)
    assert delivery.key == "s-1-20260302T120000Z"


def test_of_a_header_that_is_there_twice_none_is_chosen() -> None:
    twice = [*headers().items(), ("Webhook-Id", "another")]
    assert refusal(twice).status == 401


def test_only_the_first_signatures_are_looked_at() -> None:
    own = headers()["webhook-signature"]
    few, many = " ".join(["v1,no"] * 15), " ".join(["v1,no"] * 16)
    given = headers() | {"webhook-signature": f"{few} {own}"}
    assert isinstance(Receiver(SECRET).verdict(given, BODY, now=NOW), Delivery)
    assert refusal(headers() | {"webhook-signature": f"{many} {own} v1,no"}).status == 401


@pytest.mark.parametrize("away", [timedelta(seconds=-301), timedelta(seconds=301)])
def test_a_delivery_of_another_time_is_refused(away: timedelta) -> None:
    receiver = Receiver(SECRET)
    assert isinstance(receiver.verdict(headers(), BODY, now=NOW + away * (300 / 301)), Delivery)
    stale = receiver.verdict(headers(), BODY, now=NOW + away)
    assert isinstance(stale, Answer)
    assert (stale.status, "300 s" in stale.text) == (401, True)
    assert isinstance(
        Receiver(SECRET, tolerance_seconds=302).verdict(headers(), BODY, now=NOW + away), Delivery
    )


def test_the_fifth_callback_in_a_row_is_a_loop() -> None:
    assert isinstance(Receiver(SECRET).verdict(headers(hops=3), BODY, now=NOW), Delivery)
    assert refusal(headers(hops=4)).status == 508
    assert refusal(headers(hops=1), max_hops=1).status == 508


@pytest.mark.parametrize(
    "change",
    [{"X-Scheduler-Hops": "many"}, {"X-Scheduler-Attempt": "1.5"}, {"X-Scheduler-Run-Time": "2026-03-02"}],
)
def test_a_malformed_header_is_named(change: dict[str, str]) -> None:
    answer = refusal(headers() | change)
    assert (answer.status, next(iter(change)) in answer.text) == (400, True)


def test_a_body_that_is_too_large_is_refused_unread() -> None:
    body = b"x" * 11
    assert refusal(headers(body=body), body, max_body_bytes=10).status == 413


@pytest.mark.parametrize(
    "secrets", ["", "b2xk", "whsec_", "whsec_b2xk", "whsec_!" + "b" * 40, [], ["whsec_x"]]
)
def test_a_malformed_secret_is_refused_and_not_repeated(secrets: str | list[str]) -> None:
    with pytest.raises(ValueError, match=r"^secrets: ") as caught:
        Receiver(secrets)
    assert "b2xk" not in str(caught.value)
    assert "!" not in str(caught.value)


def test_nothing_secret_is_shown() -> None:
    receiver = Receiver(SECRET)
    delivery = receiver.verdict(headers() | {"Authorization": "Bearer swordfish"}, BODY, now=NOW)
    assert "full" not in repr(delivery)
    assert "swordfish" not in repr(delivery)
    assert SECRET.removeprefix("whsec_") not in repr(receiver)


def test_a_delivery_has_what_completes_its_event_and_shows_it_to_nobody() -> None:
    given = headers() | {"X-Scheduler-Completion-Token": "a token"}
    delivery = Receiver(SECRET).verdict(given, BODY, now=NOW)
    assert isinstance(delivery, Delivery)
    assert delivery.completion_token == "a token"
    assert "a token" not in repr(delivery)
    without = Receiver(SECRET).verdict(headers(), BODY, now=NOW)
    assert isinstance(without, Delivery)
    assert without.completion_token is None
