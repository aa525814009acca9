"""Where a run's embedded servers are, written down for the other commands: their ports differ each time."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

NAME = "running.yaml"


@contextmanager
def written_down(folder: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """Keeps `folder/running.yaml`, a configuration file with these settings, for as long as the run lasts."""
    sections: dict[str, dict[str, str]] = {}
    for name, value in environment.items():
        section, _, key = name.lower().partition("_")
        sections.setdefault(section, {})[key] = value
    path = folder / NAME
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(sections))
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
