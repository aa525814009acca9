"""Writes what is made from the code: the pages of the command line and the API, and the client's fields.

`python -m docs.reference` writes them; `make docs` does so before it builds the site.
"""

import os
import subprocess
import sys
from pathlib import Path

from .client_fields import destination_fields, message_fields, schedule_fields
from .command_line import command_line
from .http_api import api_page, file_schema

#: Set in the second process: the options of the command line follow from the client's fields.
AGAIN = "REFERENCE_AGAIN"
ROOT = Path(__file__).parents[2]


def generated(root: Path = ROOT) -> dict[Path, str]:
    """Each generated file, and the text that it must hold."""
    api, client = root / "docs" / "api.md", root / "scheduler_app" / "client"
    return {
        root / "docs" / "cli.md": command_line(),
        api: api_page(api.read_text()),
        client / "schedule_fields.py": schedule_fields(),
        client / "destination_fields.py": destination_fields(),
        client / "message_fields.py": message_fields(),
        root / "scheduler_app" / "cli" / "apply" / "schema.json": file_schema(),
    }


def stale(root: Path = ROOT) -> list[tuple[Path, str]]:
    """The generated files that do not hold what they must, with the text that they must hold."""
    return [
        (path, text)
        for path, text in generated(root).items()
        if not path.exists() or path.read_text() != text
    ]


def write(root: Path = ROOT) -> None:
    """Writes the stale files anew; those that follow from another generated file are written by a process
    that has read it."""
    found = stale(root)
    for path, text in found:
        path.write_text(text)
    if found and not os.environ.get(AGAIN):
        command = [sys.executable, "-m", "docs.reference"]
        subprocess.run(command, cwd=root, env={**os.environ, AGAIN: "1"}, check=True)  # noqa: S603
