"""`scheduler import-crontab`: takes a crontab over."""

import json
import shlex
from collections.abc import Iterator
from functools import partial
from typing import IO

import click

from scheduler_app.cli.client_options import with_client
from scheduler_app.cli.crontab.reading import CrontabLine, read_crontab, schedule_of
from scheduler_app.cli.crontab.shell_line import pattern_of
from scheduler_app.cli.durations import duration
from scheduler_app.cli.entry_import import Importing, Refused, id_prefix_option, import_entries, zone_option
from scheduler_app.cli.output import say
from scheduler_app.client import Scheduler

_SYSTEM = ("/etc/crontab", "/etc/cron.d/")


@click.command("import-crontab")
@click.argument("file", type=click.File(encoding="utf-8"))
@zone_option("That of the machine whose crontab it is; CRON_TZ in the file goes before.", required=True)
@click.option(
    "--user-column/--no-user-column",
    default=None,
    help="A user stands before each command.  [default: in /etc/crontab and /etc/cron.d]",
)
@click.option(
    "--timeout",
    type=duration,
    default="5m",
    show_default=True,
    help="Ends a command that runs for longer, which cron does not; 5m is the most.",
)
@id_prefix_option("cron")
@click.option("--update", is_flag=True, help="Change schedules that exist and differ.")
@click.option("--dry-run", is_flag=True, help="Show what each would become, and change nothing.")
@with_client
def import_crontab(
    scheduler: Scheduler,
    file: IO[str],
    timezone: str,
    user_column: bool | None,
    timeout: int,
    id_prefix: str,
    update: bool,
    dry_run: bool,
) -> None:
    """Create a schedule, with an action command, of each line of the crontab FILE (- for standard input).

    `NAME=value` lines become variables of the commands below them. Workers run what ALLOWED_COMMANDS allow:
    --dry-run shows patterns that suffice. What is imported a second time stays as it is; a line is known by
    its command. What cannot be taken over is named with the reason, and the exit status is 1.
    """
    if user_column is None:
        user_column = str(file.name).startswith(_SYSTEM)
    patterns: dict[str, None] = {}

    def found() -> Iterator[CrontabLine | Refused]:
        for line in read_crontab(file, timezone, user_column=bool(user_column)):
            if isinstance(line, CrontabLine) and (pattern := pattern_of(line.action)):
                patterns[pattern] = None
            yield line

    fields_of = partial(schedule_of, timeout_seconds=timeout)
    try:
        import_entries(Importing(scheduler, fields_of, "", id_prefix, update, dry_run), found())
    finally:
        if dry_run and patterns:
            allowed = shlex.quote(json.dumps(list(patterns), ensure_ascii=False))
            say(f"ALLOWED_COMMANDS={allowed}", err=True)
