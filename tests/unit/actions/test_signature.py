import base64
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from scheduler_app.actions.http import check_secret, headers_for, new_secret, sign
from scheduler_app.domain.errors import InvalidField


def signed(body: bytes | None, *secrets: str) -> dict[str, str]:
    now = datetime.now(UTC)
    headers = headers_for(
        event_id="job-1-20250105T120000Z",
        schedule_id="job",
        run_time=now,
        attempt=1,
        now=now,
        user_headers=(),
        body=body,
        signing_secrets=secrets,
    )
    return dict(headers)


def test_a_receiver_verifies_what_we_signed() -> None:
    secret = new_secret()
    assert Webhook(secret).verify(b'{"a": 1}', signed(b'{"a": 1}', secret)) == {"a": 1}


def test_a_receiver_refuses_a_body_that_was_changed() -> None:
    secret = new_secret()
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(b'{"a": 2}', signed(b'{"a": 1}', secret))


def test_during_a_rotation_both_secrets_verify() -> None:
    old, new = new_secret(), new_secret()
    headers = signed(b"{}", old, new)
    assert len(headers["webhook-signature"].split()) == 2
    assert Webhook(old).verify(b"{}", headers) == Webhook(new).verify(b"{}", headers) == {}


def test_no_body_is_signed_as_an_empty_one() -> None:
    secret = new_secret()
    headers = signed(None, secret)
    expected = sign(secret, headers["webhook-id"], int(headers["webhook-timestamp"]), b"")
    assert headers["webhook-signature"] == expected


def test_the_signature_is_that_of_the_specification() -> None:
    # The example of https://www.standardwebhooks.com, "Verifying webhooks".
    signature = sign(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_new_secret_has_32_random_bytes() -> None:
    secret = new_secret()
    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    assert secret != new_secret()
    check_secret(secret)


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        base64.b64encode(b"x" * 32).decode(),
        "whsec_" + base64.b64encode(b"x" * 23).decode(),
        "whsec_" + base64.b64encode(b"x" * 65).decode(),
        "whsec_not!base64" * 4,
        "whsec_ü" + "a" * 40,
    ],
)
def test_an_unusable_secret_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(InvalidField) as refused:
        check_secret(secret)
    assert refused.value.field == "signing_secret"
    assert not secret or secret.removeprefix("whsec_") == "" or secret not in refused.value.message
