"""The command `scheduler`: a file for each command."""

from importlib import import_module

import click

from scheduler_app.version import __version__

#: Where each command is. A module is imported when its command is asked for: drivers, tables and the client
#: take longer to import than most commands take to run.
_COMMANDS = {
    "create": "commands.list:create_schedule",
    "delete": "bulk_edit:delete_schedule",
    "doctor": "commands.doctor:doctor",
    "export": "commands.import_:export_schedules",
    "get": "commands.list:get_schedule",
    "history": "commands.history:history",
    "import": "commands.import_:import_schedules",
    "list": "commands.list:list_schedules",
    "pause": "bulk_edit:pause_schedule",
    "preview": "commands.preview:preview",
    "redrive": "commands.redrive:redrive",
    "reseal": "commands.reseal:reseal",
    "resume": "bulk_edit:resume_schedule",
    "trigger": "commands.list:trigger_schedule",
    "up": "commands.up:up",
}


class _ImportedOnDemand(click.Group):
    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[name].partition(":")
        command: click.Command = getattr(import_module(f"{__name__}.{module}"), attribute)
        return command


@click.group(cls=_ImportedOnDemand, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="scheduler")
def main() -> None:
    """RRule Scheduler: HTTP callbacks at every occurrence of an RFC 5545 rule."""
