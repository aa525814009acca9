"""The command `scheduler`: a file for each command."""

import click

from scheduler_app import __version__
from scheduler_app.cli.doctor import doctor
from scheduler_app.cli.edits import delete_schedule, pause_schedule, resume_schedule
from scheduler_app.cli.history import history
from scheduler_app.cli.moving import export_schedules, import_schedules
from scheduler_app.cli.preview import preview
from scheduler_app.cli.reseal import reseal
from scheduler_app.cli.schedules import (
    create_schedule,
    get_schedule,
    list_schedules,
    trigger_schedule,
)
from scheduler_app.cli.up import up


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="scheduler")
def main() -> None:
    """RRule Scheduler: HTTP callbacks at every occurrence of an RFC 5545 rule."""


for _command in (
    up,
    doctor,
    list_schedules,
    get_schedule,
    create_schedule,
    trigger_schedule,
    pause_schedule,
    resume_schedule,
    delete_schedule,
    history,
    preview,
    export_schedules,
    import_schedules,
    reseal,
):
    main.add_command(_command)
