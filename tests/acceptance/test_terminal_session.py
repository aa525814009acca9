"""The terminal session of the manual: each command shows what the page says, but for times and random ids."""

import re
import sys
from pathlib import Path

from tests.acceptance.journal import Journal
from tests.acceptance.stack import CODE, Stack
from tests.acceptance.terminal import shown
from tests.processes import wait_until

PAGE = CODE / "docs" / "operating.md"
MARK = "<!-- run by tests/acceptance/test_terminal_session.py -->\n```console\n"
#: The receiver of the page.
SHOWN_URL = "http://localhost:40001/report"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)")
_HOST = re.compile(r"worker@\S+")
_RANDOM = re.compile(r"-manual-[0-9a-f]{24}")


def session(page: str) -> list[tuple[str, str]]:
    """The commands of the marked blocks, each with what it shows."""
    found: list[tuple[str, str]] = []
    for block in page.split(MARK)[1:]:
        for part in re.split(r"^\$ ", block.split("```")[0], flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            while command.endswith("\\"):
                more, _, output = output.partition("\n")
                command = f"{command}\n{more}"
            found.append((command, output))
    return found


def without_what_differs(text: str) -> str:
    """Times, random ids and durations differ each time, and with them the widths of columns, and where their
    lines are broken: a time without milliseconds is shorter."""
    text = _HOST.sub("worker@…", _RANDOM.sub("-manual-…", _TIME.sub("TIME", text)))
    text = re.sub(r"\b\d+(\.\d+)? m?s\b", "SECONDS", text)
    return " ".join(text.split())


def test_the_session_of_the_manual_shows_what_the_manual_says(
    stack: Stack, journal: Journal, tmp_path: Path
) -> None:
    program = tmp_path / "scheduler"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m scheduler_app.cli "$@"\n')
    program.chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "PYTHONPATH": str(CODE),
        "SCHEDULER_URL": stack.url,
        "HOME": str(tmp_path),
    }
    commands = session(PAGE.read_text())
    assert len(commands) >= 6
    url = journal.url("/report").replace("127.0.0.1", "localhost")
    said = []
    for command, output in commands:
        here = command.replace(SHOWN_URL, url)
        text = shown(here, tmp_path, environment)
        said.append(f"$ {command}\n{text}")
        if command.startswith("scheduler trigger"):
            wait_until(lambda: stack.events("daily-report") != [], "the event to end")
        (tmp_path / "session").write_text("".join(said))
        assert without_what_differs(text) == without_what_differs(output), "".join(said)
