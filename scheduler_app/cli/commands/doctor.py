"""`scheduler doctor`: checks everything that callbacks need, and names the remedies."""

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


#: The checks of what people or receivers stop; no other note means that something is not sent.
STOPPING = ("kill switches", "destinations")


@click.command()
@click.option(
    "--config",
    help="A configuration file.  [default: that of `scheduler up` in ./data, ./config.yaml,"
    " ./config/config.yaml]",
)
@click.option("--json", "as_json", is_flag=True, help="The checks as JSON, for programs.")
@click.option(
    "--flower-url",
    envvar="FLOWER_URL",
    help="Flower's address.  [FLOWER_URL; default: FLOWER_PORT of this machine]",
)
def doctor(config: str | None, as_json: bool, flower_url: str | None) -> None:
    """Check everything that callbacks need, and say what to do.

    This looks at the MongoDB, broker and Flower that the settings name, at the beats and workers that use
    them, and at clocks and keys. The exit status is 1 when something is wrong.
    """
    try:
        settings = load_settings(config)
        # Imported here: it imports Celery, for which the other commands need not wait.
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
        click.echo(_said_at_last(checks, wrong))
    sys.exit(1 if wrong else 0)


def _said_at_last(checks: list[Check], wrong: list[Check]) -> str:
    if wrong:
        return f"Wrong: {', '.join(check.name for check in wrong)}."
    stopping = [check.name for check in checks if check.name in STOPPING and check.status is not Status.OK]
    return f"Everything is there, but see: {', '.join(stopping)}." if stopping else "Everything is there."


def _row(check: Check) -> list[str]:
    remedy = f"\n→ {check.remedy}" if check.remedy else ""
    return [_MARKS[check.status], check.name, check.found + remedy]


def _as_json(check: Check) -> dict[str, object]:
    common = {
        "name": check.name,
        "status": check.status.value,
        "found": check.found,
        "remedy": check.remedy or None,
    }
    return {**common, **check.facts}
