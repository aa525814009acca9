"""`scheduler doctor`: what is there, what is missing, and what to do about it."""

import sys

import click

from scheduler_app.cli.errors import CannotStart
from scheduler_app.cli.output import show_json, table
from scheduler_app.config import InvalidSetting, load_settings
from scheduler_app.domain.errors import InvalidField
from scheduler_app.health import Check, Status

_MARKS = {
    Status.OK: "[green]✓[/]",
    Status.NOTE: "[yellow]![/]",
    Status.UNKNOWN: "[dim]?[/]",
    Status.WRONG: "[bold red]✗[/]",
}


@click.command()
@click.option("--config", help="A configuration file.  [default: ./config.yaml, ./config/config.yaml]")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.option("--flower-url", help="Where Flower would be.  [default: FLOWER_PORT of this machine]")
def doctor(config: str | None, as_json: bool, flower_url: str | None) -> None:
    """Look at all that callbacks need, and say what to do.

    MongoDB, Redis, beats, workers, clocks, keys: those that the settings name. Ends with 1 when something is
    wrong, with 2 when a setting is.
    """
    try:
        settings = load_settings(config)
        # Only here: it brings Celery along, which the other commands need not wait for, and which reads the
        # settings as well and would end the process in words of its own.
        from scheduler_app.cli.diagnosis import diagnose

        flower = flower_url or f"http://127.0.0.1:{settings.flower_port}"
        checks = diagnose(settings, flower.rstrip("/"))
    except (InvalidSetting, InvalidField) as error:
        raise CannotStart(str(error)) from None
    wrong = [check for check in checks if check.status is Status.WRONG]
    if as_json:
        show_json({"ok": not wrong, "checks": [_as_json(check) for check in checks]})
    else:
        table([], [_row(check) for check in checks])
        click.echo(f"Wrong: {', '.join(check.name for check in wrong)}." if wrong else "Everything is there.")
    sys.exit(1 if wrong else 0)


def _row(check: Check) -> list[str]:
    remedy = f"\n→ {check.remedy}" if check.remedy else ""
    return [_MARKS[check.status], check.name, check.found + remedy]


def _as_json(check: Check) -> dict[str, object]:
    said = {
        "name": check.name,
        "status": check.status.value,
        "found": check.found,
        "remedy": check.remedy or None,
    }
    return {**said, **check.facts}
