"""What people read in a notification."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduler_app.domain.cause import Cause, CauseKey, CauseKind, Tally, failing_key, found, opened
from scheduler_app.domain.notice_text import MAX_LINE, notice_text, trial_text
from scheduler_app.domain.notification_rule import BEGIN, END

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
URL = "https://scheduler.example.com"


def cause(receiver: str = "https://erp.example.com:443", **fields: Any) -> Cause:
    tally = Tally(failing_key("nightly-1-20260302T120000Z", receiver, 500, None), NOON, NOON)
    for number in range(25):
        tally.add(
            f"nightly{number}-1-20260302T120000Z",
            f"nightly{number}",
            NOON + timedelta(minutes=number),
            "500 Internal Server Error",
            tags=("team:billing",),
            is_first=True,
            gave_up=number < 3,
        )
    return replace(opened(tally), **fields)


def test_it_says_what_failed_who_is_affected_since_when_and_what_to_do() -> None:
    own = cause()
    subject, text = notice_text("ops", BEGIN, [own], 0, URL)
    assert subject == text.splitlines()[0]
    assert "https://erp.example.com:443" in subject
    assert "25 schedules" in subject
    for line in (
        "Since: Mon 02 Mar 2026 12:00:00 UTC",
        "Last failure: Mon 02 Mar 2026 12:24:00 UTC",
        "Tags: team:billing",
        "Events: 25 failed, 3 of them for good",
        "Last error: 500 Internal Server Error",
        f"  scheduler failures show {own.id}",
        f"  scheduler failures resend {own.id} --rate 5",
        f"  scheduler silence set {own.id} --for 2h --reason known --schedule nightly0",
    ):
        assert line in text.splitlines()
    assert "nightly19, and 5 more" in text
    assert f"{URL}/failures/{own.id}#again" in text
    assert f"Tell nobody of it for two hours: {URL}/failures/{own.id}" in text
    assert "notification ops" in text


def test_of_a_process_that_is_missing_it_says_where_to_look() -> None:
    tally = found(CauseKey("default", CauseKind.MACHINERY, "beat"), NOON, NOON, "no beat has reported")
    subject, text = notice_text("ops", BEGIN, [opened(tally)], 0, URL)
    assert subject.startswith("Machinery: beat (no beat has reported)")
    assert "scheduler doctor" in text
    assert "resend" not in text
    assert "kill-switch" not in text
    assert "Events" not in text


def test_of_a_fact_it_shows_the_schedule_and_asks_for_nothing() -> None:
    tally = found(
        CauseKey("default", CauseKind.FINISHED, "nightly"), NOON, NOON, "has no occurrence any more"
    )
    text = notice_text("ops", BEGIN, [opened(tally)], 0, URL).text
    assert f"See it: {URL}/schedules/nightly" in text
    assert "scheduler failures" not in text
    assert "See it" not in notice_text("ops", BEGIN, [opened(tally)], 0, "").text


def test_without_a_public_url_there_are_commands_alone() -> None:
    text = notice_text("ops", BEGIN, [cause()], 0, "").text
    assert "What you can do" not in text
    assert "scheduler failures show" in text


def test_a_destination_is_silenced_by_its_name_and_nothing_is_silenced_as_a_whole() -> None:
    assert "--destination erp" in notice_text("ops", BEGIN, [cause("destination erp")], 0, URL).text
    alone = replace(cause(), schedules=type(cause().schedules)())
    assert "silence set" not in notice_text("ops", BEGIN, [alone], 0, URL).text


def test_an_end_says_when_and_asks_for_nothing_to_be_stopped() -> None:
    own = cause(over_at=NOON + timedelta(hours=1), resent=7)
    subject, text = notice_text("ops", END, [own], 0, URL)
    assert subject.startswith("Over: ")
    assert "Over: Mon 02 Mar 2026 13:00:00 UTC" in text
    assert "Sent again: 7 dead letters" in text
    assert "kill-switch" not in text


def test_several_causes_share_a_message_which_counts_those_that_it_does_not_name() -> None:
    others = [cause(f"https://h{number}.example.com:443") for number in range(3)]
    subject, text = notice_text("ops", BEGIN, others, 40, URL)
    assert subject.endswith(", and 40 more")
    assert "h1.example.com" in text
    assert "- and 38 more" in text


def test_no_name_or_error_makes_a_line_of_its_own_or_an_endless_one() -> None:
    bent = cause(error="oh\r\nBcc: x@y.z\n" + "x" * 10_000)
    subject, text = notice_text("ops", BEGIN, [bent], 0, URL)
    assert "\n" not in subject
    assert not any(line.startswith("Bcc") for line in text.splitlines())
    assert max(map(len, text.splitlines())) <= MAX_LINE + 20 * 80


def test_a_test_says_that_it_is_one() -> None:
    subject, text = trial_text("ops", URL)
    assert subject == "A test of the notification ops"
    assert URL in text
    assert "http" not in trial_text("ops", "").text
