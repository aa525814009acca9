"""docs/containers.md: what a run saw, written by the run itself."""

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.containers.deployment import ROOT

PAGE = ROOT / "docs" / "containers.md"
BEGINS = "<!-- Written by `make containers`. -->\n"


class Results:
    """What each step saw last, kept beside the engine, so that steps may run one by one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.steps: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def note(self, name: str, about: str, seconds: float, seen: list[str]) -> None:
        at = f"{datetime.now(UTC):%Y-%m-%d}"
        self.steps[name] = {"about": about, "seconds": round(seconds), "seen": seen, "at": at}
        self._save()

    def forget(self, name: str) -> None:
        self.steps.pop(name, None)
        self._save()

    def _save(self) -> None:
        self._path.write_text(json.dumps(self.steps, indent=1))


def write(results: Results, names: list[str]) -> None:
    """The text above the line stays; below it stands what was seen."""
    before = PAGE.read_text().partition(BEGINS)[0]
    there = [(name, results.steps[name]) for name in names if name in results.steps]
    minutes = sum(step["seconds"] for _, step in there) / 60
    latest = max(step["at"] for _, step in there)
    lines = [
        f"Each step as it last passed, the latest on {latest}; {_machine()}; {minutes:.0f} minutes together:",
        "",
        "| step | what it does | seconds | what was seen |",
        "|---|---|---|---|",
    ]
    for name, step in there:
        seen = "<br>".join(each.replace("|", "\\|") for each in step["seen"])
        lines.append(f"| `{name}` | {step['about'].rstrip('.')} | {step['seconds']} | {seen} |")
    if missing := [f"`{name}`" for name in names if name not in results.steps]:
        lines += ["", f"Not seen to pass yet: {', '.join(missing)}."]
    PAGE.write_text(before + BEGINS + "\n" + "\n".join(lines) + "\n")


def _machine() -> str:
    release = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    return f"{release}, {os.cpu_count()} cores"
