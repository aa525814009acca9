"""The files that faults are put into: the delivery core, and rules whose faults once went unnoticed."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
_NODE: Final = ".venv/node"
_PLACES: Final = (
    "scheduler_app/worker",
    "scheduler_app/usecases/duties/expansion.py",
    "scheduler_app/usecases/duties/owed_expansion.py",
    "scheduler_app/usecases/duties/dispatch.py",
    "scheduler_app/usecases/duties/dispatch_selection.py",
    "scheduler_app/usecases/duties/fair_reads.py",
    "scheduler_app/usecases/duties/housekeeping.py",
    "scheduler_app/store/events",
    "scheduler_app/broker",
    "scheduler_app/domain/event.py",
    "scheduler_app/domain/states.py",
    "scheduler_app/domain/destination.py",
    "scheduler_app/domain/recurrence/rules/open_days.py",
    "scheduler_app/domain/recurrence/warnings.py",
    "scheduler_app/domain/triggers/phrase/dates.py",
    "scheduler_app/domain/triggers/phrase/repeated_days.py",
    "scheduler_app/webserver/worker.py",
)


def sources() -> list[str]:
    """The files, by their paths below the root, in order."""
    found: list[Path] = []
    for place in _PLACES:
        path = ROOT / place
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [path.relative_to(ROOT).as_posix() for path in found]


def copy_tree(folder: Path) -> None:
    """Copies all files that Git knows, and new ones that it does not ignore; links what npm has installed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    # Some tests need what npm has installed, such as the provider of sign-ins.
    (folder / ".venv").mkdir()
    (folder / _NODE).symlink_to(ROOT / _NODE)
