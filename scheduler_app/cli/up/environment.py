"""What the parts of a run are told, by their environment."""

import os
import sys
from collections.abc import Mapping

from scheduler_app.config import Settings

#: What differs under `scheduler up` from the settings' own defaults.
DEFAULTS = {
    # Whoever tries it out has the receiver on the same machine.
    "CALLBACK_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
    # Ctrl-C is to end everything within 15 s.
    "WORKER_SOFT_SHUTDOWN_SECONDS": "8",
}


def defaults(settings: Settings) -> dict[str, str]:
    """Those of `DEFAULTS` that nothing replaces; a variable that is set to nothing is a choice too."""
    # The parts write to a pipe, and only we know that it ends at a terminal.
    ours = DEFAULTS | ({"LOG_FORMAT": "text"} if sys.stdout.isatty() else {})
    return {
        name: value for name, value in ours.items() if name not in settings.given and name not in os.environ
    }


def environment(settings: Settings, extra: Mapping[str, str]) -> dict[str, str]:
    """This process's own, every setting that was given anywhere (a file and flags too), and `extra`."""
    given = {name: _written(getattr(settings, name.lower())) for name in settings.given}
    return {**os.environ, **given, **extra, "PYTHONUNBUFFERED": "1"}


def _written(value: object) -> str:
    """As it stands in the environment."""
    return ",".join(value) if isinstance(value, tuple) else str(value)
