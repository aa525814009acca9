"""Comparing with the golden files, or writing them anew."""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FILES: Final = Path(__file__).parent / "files"
#: Documents of older releases, which are kept by hand.
OLDER: Final = Path(__file__).parent / "older"
#: Set by `python -m tests.golden`.
WRITES: Final = "GOLDEN_FILES_ARE_WRITTEN"
#: Lines of a diff that a failure shows.
MOST_LINES: Final = 200


def compare(folder: str, made: Mapping[str, str]) -> None:
    """Fails with a diff where the files of this folder differ from `made`: texts by the names of files. Where
    the files are written anew, they become what was made."""
    place = FILES / folder
    if WRITES in os.environ:
        place.mkdir(parents=True, exist_ok=True)
        for path in place.iterdir():
            if path.name not in made:
                path.unlink()
        for name, text in made.items():
            (place / name).write_text(text, encoding="utf-8")
    kept = {path.name: path.read_text(encoding="utf-8") for path in place.iterdir()}
    difference = [
        line
        for name in sorted({*made, *kept})
        for line in diff(kept.get(name, ""), made.get(name, ""), f"{folder}/{name}")
    ]
    assert not difference, "\n".join(
        ["not as the golden files say; see docs/developing.md, Golden files", *difference[:MOST_LINES]]
    )


def diff(kept: str, made: str, name: str) -> list[str]:
    """The lines of a unified diff; none where both are the same."""
    if kept == made:
        return []
    return list(difflib.unified_diff(kept.splitlines(), made.splitlines(), name, "now", lineterm="", n=8))
