"""Keeps the secret settings of a process from other processes of its user, and from what commands print.

On Linux every process of the same user may read a process's initial environment, by /proc/<pid>/environ, and
its memory. Commands often run as the user of their worker.
"""

import ctypes
import os
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scheduler_app.config.api_keys import read_key
from scheduler_app.config.settings import Settings, names

PR_SET_DUMPABLE = 4
#: In /proc/self/stat, counted from the process's state: where the initial environment begins and ends.
_ENV_START, _ENV_END = 47, 48
#: Secrets that are no settings.
_OTHERS = ("FLOWER_BASIC_AUTH", "CELERY_BROKER_URL", "CELERY_RESULT_BACKEND", "SCHEDULER_API_KEY")
#: A shorter password stands in any text.
_SHORTEST = 8


def secret_names() -> frozenset[str]:
    """The variables of an environment whose values are secret."""
    return frozenset([*(name for name, field in names().items() if not field.repr), *_OTHERS])


def conceal_secrets(settings: Settings) -> None:
    """Makes this process unreadable for others of its user, and overwrites the secrets in its initial
    environment, which root, too, could read there. What this process and its children read stays the same.

    To be called when the settings have been read. Without ALLOWED_COMMANDS it does nothing: the processes of
    this user are then none of strangers', and a debugger can be attached.
    """
    if not settings.allowed_commands or not sys.platform.startswith("linux"):
        return
    _overwrite_environment(secret_names())
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")


def _overwrite_environment(secret: frozenset[str]) -> None:
    stat = Path("/proc/self/stat").read_bytes()
    fields = stat[stat.rindex(b")") + 2 :].split()
    start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
    at = start
    for entry in ctypes.string_at(start, end - start).split(b"\0"):
        name, _, value = entry.partition(b"=")
        if value and os.fsdecode(name) in secret:
            ctypes.memset(at + len(name) + 1, ord("*"), len(value))
            current = os.environ.get(os.fsdecode(name))
            if current is not None:
                # A child process without an environment of its own gets the strings that C knows.
                os.putenv(os.fsdecode(name), current)
        at += len(entry) + 1


def secret_values(settings: Settings) -> tuple[str, ...]:
    """What no command's output may show: keys, passwords, and the URLs that have passwords."""
    login = os.environ.get("FLOWER_BASIC_AUTH", "")
    urls = [settings.mongo_uri, settings.broker, settings.flow_control_url]
    urls += [url for _, url in (*settings.celery_brokers, *settings.celery_result_backends)]
    values = {
        *(read_key(entry).key for entry in settings.api_keys),
        *(key.strip() for key in settings.secrets_key.split(",")),
        login,
        login.partition(":")[2],
    }
    for url in urls:
        for part in url.split(";"):
            password = _password(part)
            if password:
                values |= {url, part, password, unquote(password)}
    return tuple(sorted(value for value in values if len(value) >= _SHORTEST))


def _password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:
        return ""
