"""The options that choose schedules by their properties, as in `list`, `export` and the bulk edits."""

from collections.abc import Callable

import click

STATES = ("active", "paused", "finished", "error")
LAST_OUTCOMES = ("completed", "error", "retrying")


def schedule_filters(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `state`, `name`, `name_contains`, `tag` and `last_outcome`, each None if it is not given."""
    for option in (
        click.option("--name-contains", help="Only schedules whose name contains this, in any case."),
        click.option("--name", help="Only schedules with exactly this name."),
    ):
        command = option(command)
    return filters_of_lists(command)


def filters_of_lists(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `state`, `tag` and `last_outcome`, each None if it is not given."""
    for option in (
        click.option(
            "--last-outcome",
            type=click.Choice(LAST_OUTCOMES),
            help="Only schedules whose last run ended like this.",
        ),
        click.option("--tag", help="Only schedules with this tag."),
        click.option("--state", type=click.Choice(STATES), help="Only schedules in this state."),
    ):
        command = option(command)
    return command
