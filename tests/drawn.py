"""Which part is tried by `make test`: one in ten, or in four, drawn by the commit, so that in time all is."""

import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeVar

SHARE: Final = 10
Item = TypeVar("Item")


def _seed() -> str:
    """FAULTS_SEED repeats a draw; without it the commit is the seed, or "none" outside a repository."""
    if given := os.environ.get("FAULTS_SEED"):
        return given
    found = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or "none"


SEED: Final = _seed()


def drawn(items: Sequence[Item], of: str, share: int = SHARE) -> list[Item]:
    """One in `share` of the items, at least one; `of` tells one draw from the others of a seed."""
    return random.Random(f"{SEED} {of}").sample(items, max(1, len(items) // share))
