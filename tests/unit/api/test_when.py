"""The field "When" of the page takes what the API takes in several fields."""

import pytest

from scheduler_app.api.pages.when import trigger_fields


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("every weekday at 9:00", "phrase"),
        ("5 minutes from now please", "phrase"),
        ("in 10 minutes", "phrase"),
        ("0 9 * * 1-5", "cron"),
        ("*/5 * * * *", "cron"),
        ("0 0 9 * * MON", "cron"),
        ("@daily", "cron"),
        ("FREQ=WEEKLY;BYDAY=MO", "rrule"),
        ("freq=daily", "rrule"),
        ("DTSTART:20300101T090000Z\r\nRRULE:FREQ=DAILY", "rrule"),
        ("2030-01-05T12:00:00Z", "run_at"),
        ("2030-01-05 12:00", "run_at"),
        ("0 9 1", "phrase"),
    ],
)
def test_text_is_given_to_the_field_that_understands_it(text: str, field: str) -> None:
    assert list(trigger_fields(text)) == [field]


def test_lines_that_a_browser_ends_are_those_of_a_rule() -> None:
    text = "DTSTART:20300101T090000Z\r\nRRULE:FREQ=DAILY\r\n"
    assert trigger_fields(text) == {"rrule": "DTSTART:20300101T090000Z\nRRULE:FREQ=DAILY"}
