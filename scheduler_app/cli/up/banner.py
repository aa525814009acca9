"""The text that `scheduler up` prints once everything is ready: addresses, and a first command to paste."""

import json
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from scheduler_app.cli.addresses import api_url
from scheduler_app.config import Settings


def banner(addresses: Mapping[str, str], settings: Settings) -> str:
    """Returns the text, several lines long. `addresses` maps the name of each to where it is."""
    api = api_url(settings)
    width = max(map(len, addresses))
    rows = [f"  {name.ljust(width)}  {address}" for name, address in addresses.items()]
    key = ' -H "Authorization: Bearer $API_KEY"' if settings.api_keys else ""
    schedule = json.dumps(
        {"name": "Every 2 seconds", "rrule": "FREQ=SECONDLY;INTERVAL=2", "callback_url": f"{api}/health"}
    )
    return "\n".join(
        [
            "Everything is ready. Ctrl-C ends it.",
            "",
            *rows,
            "",
            "A schedule that calls back every 2 seconds:",
            "",
            f"  curl {api}/api/v1/schedules{key} -H 'Content-Type: application/json' -d '{schedule}'",
        ]
    )


def program() -> str:
    """Returns how to call `scheduler` from the reader's shell: after `make up` it is rarely on PATH."""
    script = Path(sys.executable).with_name("scheduler")
    on_path = shutil.which("scheduler")
    if on_path is not None and Path(on_path).resolve() == script.resolve():
        return "scheduler"
    if script.is_file():
        return shlex.quote(str(script))
    return f"{shlex.quote(sys.executable)} -m scheduler_app.cli"
