"""The options that choose events, as in `events`, `failed`, `tail` and `redrive`."""

from collections.abc import Callable
from typing import Any

import click


def event_filters(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the filters of events but their state, each None if it is not given."""
    for option in (
        click.option("--timezone", "--tz", help="The time zone of a --from or --to without an offset."),
        click.option("--to", "before", help="Only those with a run time before this instant."),
        click.option("--from", "after", help="Only those with a run time at or after this instant."),
        click.option("--error", help="Only those whose last error contains this text."),
        click.option(
            "--status-code", help="Only those whose last answer was one of these: 503, 5xx, or 503,429."
        ),
        click.option("--origin", help="Only those sent to this origin: https://example.com."),
        click.option("--tag", help="Only those of schedules with this tag."),
        click.option("--schedule", "schedule_id", help="Only those of this schedule."),
    ):
        command = option(command)
    return command


def any_chosen(filters: dict[str, Any]) -> bool:
    """Whether a filter was given; a time zone alone chooses nothing."""
    return any(value for name, value in filters.items() if name != "timezone")
