"""Options that several commands share: the filters of schedules and of events, and durations as people type
them (90s, 10m, 1h30m, 2d).
"""

import re
from typing import Final

import click

from scheduler_app.cli.click_extensions import options

STATES = ("active", "paused", "finished", "error")
LAST_OUTCOMES = ("completed", "error", "retrying")


#: `state`, `tag` and `last_outcome`, each None if it is not given.
list_filters = options(
    click.option("--state", type=click.Choice(STATES), help="Only schedules in this state."),
    click.option("--tag", help="Only schedules with this tag."),
    click.option(
        "--last-outcome",
        type=click.Choice(LAST_OUTCOMES),
        help="Only schedules whose last run ended like this.",
    ),
)
#: Those, `name` and `name_contains`.
schedule_filters = options(
    list_filters,
    click.option("--name", help="Only schedules with exactly this name."),
    click.option("--name-contains", help="Only schedules whose name contains this, in any case."),
)
#: The filters of events but their state, each None if it is not given.
event_filters = options(
    click.option("--schedule", "schedule_id", help="Only those of this schedule."),
    click.option("--tag", help="Only those of schedules with this tag."),
    click.option("--origin", help="Only those sent to this origin: https://example.com."),
    click.option(
        "--status-code", help="Only those whose last answer was one of these: 503, 5xx, or 503,429."
    ),
    click.option("--error", help="Only those whose last error contains this text."),
    click.option("--from", "after", help="Only those with a run time at or after this instant."),
    click.option("--to", "before", help="Only those with a run time before this instant."),
    click.option("--timezone", "--tz", help="The time zone of a --from or --to without an offset."),
)
promise_option = click.option(
    "--promise",
    is_flag=True,
    help="Say what can be said before the first run: next times, receiver, queue, limits.",
)


_SECONDS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION: Final = re.compile(r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,12})s)?", re.ASCII)
_WHOLE: Final = re.compile(r"\d{1,12}", re.ASCII)


def seconds_of(text: str) -> int:
    """The seconds of a duration: whole numbers, each with its unit (d, h, m, s), the longest unit first; a
    number alone is in seconds. Raises ValueError."""
    written = text.strip().lower()
    if _WHOLE.fullmatch(written):
        return int(written)
    found = _DURATION.fullmatch(written) if written else None
    if found is None:
        raise ValueError(f"{text!r} is not a duration; write it as 90s, 10m, 1h30m or 2d")
    amounts = zip(found.groups(), _SECONDS.values(), strict=True)
    return sum(int(number) * unit for number, unit in amounts if number)


def duration(text: str) -> int:
    """The type of an option that takes a duration: the command gets its seconds."""
    try:
        return seconds_of(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
