"""The environment that the services of a run get."""

import os
import sys
from collections.abc import Mapping

from scheduler_app.config import CONFIG_VARIABLE, Settings

#: Where the defaults of `scheduler up` differ from those of the settings.
DEFAULTS = {
    # A person who tries it out has the receiver on the same machine.
    "CALLBACK_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
    # Ctrl-C has to end everything within 15 s.
    "WORKER_SOFT_SHUTDOWN_SECONDS": "7",
}


def defaults(settings: Settings) -> dict[str, str]:
    """Returns the `DEFAULTS` that nothing overrides. An empty environment variable overrides them, too."""
    # The services write to a pipe, so they cannot see that their lines end up on a terminal.
    values = DEFAULTS | ({"LOG_FORMAT": "text"} if sys.stdout.isatty() else {})
    return {
        name: value for name, value in values.items() if name not in settings.given and name not in os.environ
    }


def environment(settings: Settings, extra: Mapping[str, str]) -> dict[str, str]:
    """Returns this process's environment, the text of every setting given (in a file or a flag, too), and
    `extra`. What reads its settings there has the same ones: it reads no file, which may have changed since,
    or is not the one that `--config` names."""
    return {
        **os.environ,
        **settings.given,
        **extra,
        CONFIG_VARIABLE: os.devnull,
        "PYTHONUNBUFFERED": "1",
    }
