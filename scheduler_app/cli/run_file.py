"""Where a run is, written down for the other commands: its ports and passwords differ each time."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

NAME = "running.yaml"


@contextmanager
def written_down(folder: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """Keeps `folder/running.yaml`, a configuration file with these settings, for as long as the run lasts."""
    # Only here: the embedded servers bring the drivers along, for which the readers need not wait.
    import yaml

    from scheduler_app.embedded import write_private

    sections: dict[str, dict[str, str]] = {}
    for name, value in environment.items():
        section, _, key = name.lower().partition("_")
        sections.setdefault(section, {})[key] = value
    path = folder / NAME
    write_private(path, yaml.safe_dump(sections))
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def running_api(folder: Path) -> str | None:
    """The URL of the API of a run that keeps its data in `folder`, or None.

    A caller may send it a key. So only a file counts that a run of this user has written, and only an address
    of this machine: a folder that somebody else filled must not name the receiver.
    """
    path = folder / NAME
    try:
        found = path.stat()
    except OSError:
        return None
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        return None
    # Only here: without a run nobody waits for what reads its file.
    from scheduler_app.cli.addresses import api_url
    from scheduler_app.config import InvalidSetting, is_loopback, load_settings

    try:
        settings = load_settings(str(path), environ={})
    except InvalidSetting:
        return None  # ended a moment ago, or an older release's
    if "API_PORT" not in settings.given or not is_loopback(settings.api_host):
        return None
    return api_url(settings)
