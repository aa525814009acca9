"""The command `scheduler`. Its commands are in `commands/`, a file for each group, rows of a table."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from scheduler_app.cli.click_extensions import USAGE, CommandGroup
from scheduler_app.version import __version__

#: The module in `commands/` and the function of each command. A module is imported only when its command is
#: called: importing the drivers, the tables and the client takes longer than most commands take to run.
_COMMANDS = {
    "apply": "apply:apply",
    "backfill": "backlog:backfill",
    "backlog": "backlog:backlog",
    "calendar": "calendar:calendar",
    "cancel": "events:cancel_events",
    "completion": "installation:completion",
    "create": "schedules:create_schedule",
    "delete": "schedule_actions:delete_schedules",
    "demo": "up:demo",
    "destination": "destination:destinations",
    "doctor": "maintenance:doctor",
    "events": "events:list_events",
    "execute": "schedule_actions:trigger_schedule",
    "export": "export_import:export_schedules",
    "failed": "events:failed",
    "failures": "failures:failures",
    "forecast": "occurrences:forecast",
    "get": "schedules:get_schedule",
    "heartbeat": "heartbeat:heartbeat",
    "history": "events:history",
    "import": "export_import:import_schedules",
    "import-celery-beat": "import_celery_beat:import_celery_beat",
    "import-crontab": "import_crontab:import_crontab",
    "blackout": "stops:blackout",
    "keys": "keys:keys",
    "kill-switch": "stops:kill_switch",
    "audit": "audit:audit",
    "ledger": "ledger:ledger",
    "list": "schedules:list_schedules",
    "login": "login:login",
    "logout": "login:logout",
    "message": "message:messages",
    "next": "occurrences:next_runs",
    "notification": "notifications:notification",
    "people": "login:people",
    "pause": "schedule_actions:pause_schedules",
    "preview": "occurrences:preview",
    "profile": "installation:profile",
    "redrive": "events:redrive",
    "reseal": "maintenance:reseal",
    "resume": "schedule_actions:resume_schedules",
    "schedule": "schedule_actions:schedule_once",
    "silence": "notifications:silence",
    "status": "failures:status",
    "tags": "tenants:tags",
    "tail": "events:tail",
    "tenant": "tenants:tenant",
    "trigger": "schedule_actions:trigger_schedule",
    "tzdata": "calendar:tzdata",
    "up": "up:up",
    "update": "schedules:update_schedule",
    "version": "installation:version",
    "why": "occurrences:why",
    "witness": "ledger:witness",
}
#: Commands that need more than the client, and the extra that brings it.
_EXTRAS = {"doctor": "server", "keys": "server", "reseal": "server", "up": "embedded", "witness": "server"}


class _ImportedOnDemand(CommandGroup):
    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[name].partition(":")
        command: click.Command = getattr(import_module(f"{__name__}.commands.{module}"), attribute)
        return command

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        with _usage_status():
            return super().make_context(*args, **options)

    def invoke(self, context: click.Context) -> Any:
        with _usage_status():
            try:
                return super().invoke(context)
            except ModuleNotFoundError as error:
                extra = _EXTRAS.get(context.invoked_subcommand or "")
                if extra is None or _is_ours(error.name):
                    raise
                raise click.ClickException(
                    f"`scheduler {context.invoked_subcommand}` needs {error.name}, which is not installed:"
                    f" pip install 'rrule-scheduler[{extra}]'"
                ) from None


def _is_ours(module: str | None) -> bool:
    return (module or "").partition(".")[0] == "scheduler_app"


@contextmanager
def _usage_status() -> Iterator[None]:
    """Gives wrong usage its own exit status: click's 2 is taken, by what a plan found."""
    try:
        yield
    except click.UsageError as error:
        error.exit_code = USAGE  # type: ignore[misc]  # click keeps it with the class
        raise


@click.group(cls=_ImportedOnDemand, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="scheduler")
def main() -> None:
    """RRule Scheduler: HTTP callbacks and commands at every occurrence of an RFC 5545 rule.

    Exit status: 0 done, 1 failed, 2 `apply --plan` found changes, 64 wrong usage.
    """
