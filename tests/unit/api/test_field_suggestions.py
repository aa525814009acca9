"""What a request is advised that gives a field which does not exist."""

import pytest

from scheduler_app.api.wire.input_schema import suggest_field

KNOWN = {"rrule", "run_at", "json", "callback_url", "max_retries"}


@pytest.mark.parametrize(
    ("tried", "advice"),
    [
        ("crontab", "use rrule, such as FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"),
        ("interval", "use rrule, such as FREQ=SECONDLY;INTERVAL=5"),
        (
            "delay_seconds",
            "use run_at, the instant after that delay, such as 2030-01-05T12:00:00Z",
        ),
        ("payload", "use json for a JSON value, or body for text"),
        ("callbackUrl", "use callback_url"),
        ("max-retries", "use max_retries"),
        ("max_retrys", "use max_retries"),
        ("dry_run", "give it as a parameter of the query, ?dry_run=true"),
    ],
)
def test_the_advice_names_the_field_that_was_meant(tried: str, advice: str) -> None:
    found = suggest_field(tried, KNOWN)
    assert found is not None
    assert found.advice == advice


def test_a_kind_of_its_own_is_advised_before_a_rule() -> None:
    kinds = {"cron", "phrase", "every_seconds", "delay_seconds"}
    tried = {"crontab": "cron", "frequency": "phrase", "interval": "every_seconds", "delay": "delay_seconds"}
    for name, field in tried.items():
        found = suggest_field(name, KNOWN | kinds)
        assert found is not None
        assert (found.advice, found.field) == (f"use {field}", field)


@pytest.mark.parametrize("tried", ["colour", "x" * 100])
def test_where_nothing_comes_near_there_is_no_advice(tried: str) -> None:
    assert suggest_field(tried, KNOWN) is None


def test_advice_for_a_schedule_is_not_given_for_other_things() -> None:
    assert suggest_field("dry_run", {"limit"}) is None
    assert suggest_field("version", {"limit"}) is None
    assert suggest_field("crontab", {"limit"}) is None
