"""`python -m tests.acceptance.terminal_pictures`: makes the manual's pictures of a terminal."""

import io
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from scheduler_app.client import Scheduler
from scheduler_app.embedded import Mongod, Redis
from tests.acceptance.journal import Journal
from tests.acceptance.stack import CODE, Stack
from tests.acceptance.terminal import COLUMNS, written
from tests.processes import wait_until

FOLDER = CODE / "docs" / "_static"
PICTURES = {
    "list": "scheduler list",
    "next": "scheduler next",
    "tail": "scheduler tail --no-follow",
}
#: Each with an id, a name and a trigger, as people have them.
SCHEDULES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("daily-report", "Daily report", {"cron": "0 9 * * 1-5"}),
    ("invoices", "Invoices", {"phrase": "last business day of the month at 17:00"}),
    ("backup", "Backup", {"rrule": "FREQ=DAILY;BYHOUR=3;BYMINUTE=0;BYSECOND=0"}),
    ("newsletter", "Newsletter", {"phrase": "every other tuesday at 9:34am"}),
)
#: rich's own asks another server for a font.
_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {terminal_width} {terminal_height}">
<style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px ui-monospace, "DejaVu Sans Mono", monospace; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
<rect width="{terminal_width}" height="{terminal_height}" rx="8" fill="#292929"/>
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</svg>
"""


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="pictures-") as name,
        Mongod(Path(name) / "mongod") as mongod,
        Redis(Path(name) / "redis") as redis,
    ):
        journal = Journal()
        environment = {
            "MONGO_URI": mongod.uri,
            "MONGO_DATABASE": "pictures",
            "BROKER_URL": redis.url,
            "CALLBACK_ALLOWED_NETWORKS": "127.0.0.0/8",
        }
        stack = Stack(Path(name), environment)
        try:
            stack.all()
            _fill(stack, journal)
            _draw(stack, Path(name))
        finally:
            stack.close()
            journal.close()


def _fill(stack: Stack, journal: Journal) -> None:
    """Makes the schedules; two have run, one is paused."""
    with Scheduler(stack.url) as scheduler:
        scheduler.destinations.put("office", url=journal.url("/"))
        for schedule_id, name, trigger in SCHEDULES:
            scheduler.schedule(
                destination="office", id=schedule_id, name=name, timezone="Europe/Zurich", **trigger
            )
        scheduler.pause("newsletter")
        for schedule_id in ("daily-report", "backup"):
            scheduler.trigger(schedule_id)
            stack.finished(schedule_id)
        wait_until(lambda: not list(scheduler.events(state="running")), "all records")


def _draw(stack: Stack, folder: Path) -> None:
    program = folder / "scheduler"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m scheduler_app.cli "$@"\n')
    program.chmod(0o755)
    environment = {
        "PATH": f"{folder}:/usr/bin:/bin",
        "PYTHONPATH": str(CODE),
        "SCHEDULER_URL": stack.url,
        "HOME": str(folder),
    }
    for name, command in PICTURES.items():
        shown = written(command, folder, environment).replace(f"@{socket.gethostname()}", "@host")
        text = f"$ {command}\n{shown}"
        (FOLDER / f"terminal-{name}.svg").write_text(_svg(text, name))


def _svg(text: str, name: str) -> str:
    """The text as a terminal shows it, with a margin: lines that are too long go on below."""
    console = Console(record=True, width=COLUMNS + 2, file=io.StringIO(), force_terminal=True)
    console.print()
    for line in Text.from_ansi(text.rstrip()).split("\n", allow_blank=True):
        for part in line.divide(range(COLUMNS, len(line), COLUMNS)) or [line]:
            console.print(Text(" ") + part, no_wrap=True, soft_wrap=True)
    console.print()
    return console.export_svg(code_format=_SVG, unique_id=f"terminal-{name}", font_aspect_ratio=0.602)


if __name__ == "__main__":
    main()
