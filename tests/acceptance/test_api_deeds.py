"""What the API promises beyond a schedule's life, through every real process."""

import requests
from standardwebhooks import Webhook

from tests.acceptance.journal import Call, Journal
from tests.acceptance.stack import ONCE, Stack
from tests.acceptance.test_delivery import in_seconds
from tests.integration.actions.receiver import says
from tests.processes import wait_until


def verify(secret: str, call: Call) -> None:
    """Raises WebhookVerificationError."""
    Webhook(secret).verify(call.seen.body, dict(call.seen.headers))


def test_a_signed_callback_verifies_with_both_secrets_during_a_rotation(
    stack: Stack, journal: Journal
) -> None:
    made = stack.post(
        "/schedules",
        {
            "name": "signed",
            "callback_url": journal.url("/signed"),
            "run_at": in_seconds(3600),
            "method": "POST",
            "json": {"order": 4711},
            "signing": True,
        },
    )
    stack.post(f"/schedules/{made['id']}/trigger", status=202)
    wait_until(lambda: len(journal.calls["/signed"]) == 1, "the first call")
    verify(made["signing_secret"], journal.calls["/signed"][0])
    rotated = stack.post(f"/schedules/{made['id']}/signing-secret", {})
    stack.post(f"/schedules/{made['id']}/trigger", status=202)
    wait_until(lambda: len(journal.calls["/signed"]) == 2, "the second call")
    for secret in (made["signing_secret"], rotated["signing_secret"]):
        verify(secret, journal.calls["/signed"][1])


def test_a_dead_letter_is_redriven_under_its_key_with_its_retries_anew(
    stack: Stack, journal: Journal
) -> None:
    failing = says("500 Internal Server Error")
    url = journal.script("/redriven", failing, failing, failing, says())
    made = stack.create(url, rrule=ONCE, max_retries=1, retry_backoff_seconds=0.1)
    (dead,) = stack.finished(made)
    assert (dead["state"], dead["attempt"]) == ("error", 2)
    answer = requests.post(f"{stack.url}/api/events/{dead['_id']}/redrive")
    assert answer.status_code == 202
    wait_until(lambda: stack.events(made) != [] and stack.events(made)[0]["state"] == "completed", "success")
    (event,) = stack.events(made)
    assert (event["attempt"], len(event["attempts"])) == (4, 4)
    assert {call.key for call in journal.calls["/redriven"]} == {dead["_id"]}


def test_a_cancelled_event_is_not_sent(stack: Stack, journal: Journal) -> None:
    tried: list[str] = []

    def is_cancelled() -> bool:
        """On a machine that stands still its time may come first: then another one is made."""
        made = stack.create(journal.url(f"/cancelled/{len(tried)}"), delay_seconds=9)
        tried.append(made)
        wait_until(lambda: stack.events(made, "pending") + stack.events(made) != [], "the event")
        pending = [event["_id"] for event in stack.events(made, "pending")]
        answers = [requests.post(f"{stack.url}/api/events/{each}/cancel") for each in pending]
        return [answer.status_code for answer in answers] == [200]

    wait_until(is_cancelled, "an event to be cancelled before its time")
    stack.finished(stack.create(journal.url("/later"), delay_seconds=10))
    assert journal.calls[f"/cancelled/{len(tried) - 1}"] == []
    assert stack.events(tried[-1], include="cancelled")[0]["state"] == "cancelled"
