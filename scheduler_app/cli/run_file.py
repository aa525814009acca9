"""The file by which other commands find a run of `scheduler up`: ports and passwords differ each time."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

FILE_NAME = "running.yaml"


@contextmanager
def kept_run_file(folder: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """Writes `folder/running.yaml`, a configuration file with these settings, and removes it at the end."""
    # Imported here, because `embedded` imports the drivers of MongoDB and Redis: readers need not wait.
    import yaml

    from scheduler_app.embedded import write_private

    sections: dict[str, dict[str, str]] = {}
    for name, value in environment.items():
        section, _, key = name.lower().partition("_")
        sections.setdefault(section, {})[key] = value
    path = folder / FILE_NAME
    write_private(path, yaml.safe_dump(sections))
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def running_api(folder: Path) -> str | None:
    """Returns the URL of the API of the run that keeps its data in `folder`, or None.

    The caller may send an API key there. The file is therefore only trusted when it is this user's and
    private, and names an address of this machine: another user's file must not decide where the key goes.
    """
    path = folder / FILE_NAME
    if not path.exists():
        return None
    # Imported here: where there is no run, commands need not wait for these.
    from scheduler_app.cli.addresses import api_url
    from scheduler_app.config import InvalidSetting, is_loopback, is_private, load_settings

    if not is_private(path):
        return None

    try:
        settings = load_settings(str(path), environ={})
    except InvalidSetting:
        return None  # the run has just ended, or is of an older release
    if "API_PORT" not in settings.given or not is_loopback(settings.api_host):
        return None
    return api_url(settings)
