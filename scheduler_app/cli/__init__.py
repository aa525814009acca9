"""The command `scheduler`. Each command is a file in `commands/` and a row in the table below."""

from importlib import import_module

import click

from scheduler_app.version import __version__

#: The module in `commands/` and the function of each command. A module is imported only when its command is
#: called: importing the drivers, the tables and the client takes longer than most commands take to run.
_COMMANDS = {
    "create": "create:create_schedule",
    "delete": "delete:delete_schedules",
    "demo": "demo:demo",
    "doctor": "doctor:doctor",
    "export": "export:export_schedules",
    "get": "get:get_schedule",
    "history": "history:history",
    "import": "import_:import_schedules",
    "kill-switch": "kill_switch:kill_switch",
    "list": "list:list_schedules",
    "pause": "pause:pause_schedules",
    "preview": "preview:preview",
    "redrive": "redrive:redrive",
    "reseal": "reseal:reseal",
    "resume": "resume:resume_schedules",
    "trigger": "trigger:trigger_schedule",
    "tzdata": "tzdata:tzdata",
    "up": "up:up",
    "why": "why:why",
}


class _ImportedOnDemand(click.Group):
    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[name].partition(":")
        command: click.Command = getattr(import_module(f"{__name__}.commands.{module}"), attribute)
        return command


@click.group(cls=_ImportedOnDemand, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="scheduler")
def main() -> None:
    """RRule Scheduler: HTTP callbacks at every occurrence of an RFC 5545 rule."""
