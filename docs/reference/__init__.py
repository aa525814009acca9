"""Writes what is made from the code: the pages of the command line and the API, and the client's fields.

`make docs` calls `write`; `python -m docs.reference` does the same without building the site.
"""

from pathlib import Path

from .client_fields import client_fields
from .command_line import command_line
from .http_api import api_page

ROOT = Path(__file__).parents[2]


def generated(root: Path = ROOT) -> dict[Path, str]:
    """Each generated file, and the text that it must hold."""
    api = root / "docs" / "api.md"
    return {
        root / "docs" / "cli.md": command_line(),
        api: api_page(api.read_text()),
        root / "scheduler_app" / "client" / "schedule_fields.py": client_fields(),
    }


def write(root: Path = ROOT) -> None:
    """Writes every generated file that does not hold what it must."""
    for path, text in generated(root).items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
