"""The environment that the services of a run get."""

import os
import sys
from collections.abc import Mapping

from scheduler_app.config import Settings

#: Where the defaults of `scheduler up` differ from those of the settings.
DEFAULTS = {
    # Somebody who tries it out has the receiver on the same machine.
    "CALLBACK_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
    # Ctrl-C has to end everything within 15 s.
    "WORKER_SOFT_SHUTDOWN_SECONDS": "8",
}


def defaults(settings: Settings) -> dict[str, str]:
    """Returns the `DEFAULTS` that nothing overrides. An empty environment variable overrides them, too."""
    # The services write to a pipe, so they cannot see that their lines end up on a terminal.
    values = DEFAULTS | ({"LOG_FORMAT": "text"} if sys.stdout.isatty() else {})
    return {
        name: value for name, value in values.items() if name not in settings.given and name not in os.environ
    }


def environment(settings: Settings, extra: Mapping[str, str]) -> dict[str, str]:
    """Returns this process's environment, every setting given (in a file or a flag, too), and `extra`."""
    given = {name: _as_text(getattr(settings, name.lower())) for name in settings.given}
    return {**os.environ, **given, **extra, "PYTHONUNBUFFERED": "1"}


def _as_text(value: object) -> str:
    """Returns the text of a setting's value in an environment variable."""
    return ",".join(value) if isinstance(value, tuple) else str(value)
