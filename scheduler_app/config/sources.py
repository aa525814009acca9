"""Reads the settings from flags, the environment and the configuration file, and keeps the secret ones of a
process from others.

A value is taken from the first place that has one: a flag, the environment, the configuration file, the
default. The file is the first of `--config`, SCHEDULER_CONFIG, `./config.yaml` and `./config/config.yaml`.
Where none of the first two is given, `./data/running.yaml`, which a run of `scheduler up` keeps there,
goes before it. In the file a setting stands under its section: `PREQUEUER_TICKER_INTERVAL_SECONDS` is
`prequeuer: {ticker_interval_seconds: …}`.

On Linux every process of the same user may read a process's initial environment, by /proc/<pid>/environ,
and its memory. Commands often run as the user of their worker. So secrets are concealed there, and in what
commands print.
"""

import ctypes
import dataclasses
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

from scheduler_app.config.api_keys import read_key
from scheduler_app.config.settings import InvalidSetting, Settings, names, refuse_impossible

CONFIG_FILES = ("config.yaml", "config/config.yaml")
#: Names the file where no option does: for `celery -A scheduler_app …` and gunicorn.
CONFIG_VARIABLE = "SCHEDULER_CONFIG"
#: Where a run of `scheduler up` in this folder says which servers it has, and the settings that name others.
RUN_FILE = Path("data/running.yaml")
_SERVERS = ("MONGO_URI", "BROKER_URL", "REDIS_HOST")
_KEPT_TAGS = ("tag:yaml.org,2002:merge", "tag:yaml.org,2002:null")


def load_settings(
    config_file: str | None = None,
    overrides: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    run_file: Path | None = RUN_FILE,
) -> Settings:
    """Reads the settings from the configuration file, from `environ` (by default the process's) and from
    `overrides` (flags, under the environment's names). The file is `config_file`, else the one that
    SCHEDULER_CONFIG names, else the first of `CONFIG_FILES` that exists. In the last case the settings of a
    run of `scheduler up` in this folder, which `run_file` has, take the place of the file's, unless the
    environment or a flag names a server. Raises InvalidSetting."""
    known = names()
    environ = os.environ if environ is None else environ
    overrides = overrides or {}
    config_file = config_file or environ.get(CONFIG_VARIABLE) or None
    raw = _read_file(config_file, known)
    elsewhere = any(environ.get(name) or name in overrides for name in _SERVERS)
    if config_file is None and run_file is not None and not elsewhere and is_private(run_file):
        raw |= _read_file(str(run_file), known)
    raw |= {name: environ[name] for name in known if environ.get(name, "") != ""}
    for name, value in overrides.items():
        if name not in known:
            raise InvalidSetting(f"{name} is not a setting")
        raw[name] = value
    values: dict[str, Any] = {}
    for name, text in raw.items():
        setting = known[name]
        try:
            _refuse_unpassable(text)
            values[setting.name] = setting.metadata["parse"](text)
            # An empty variable of the environment counts as none, so a child process would read the default.
            if not text and values[setting.name] != setting.default:
                raise ValueError("must not be empty; leave it out, and it has its default")
        except ValueError as error:
            raise InvalidSetting(f"{name} {error}") from None
    settings = Settings(**values, given=raw)
    refuse_impossible(settings)
    return settings


def is_private(path: Path) -> bool:
    """Whether the file is this user's, and no other user may read or change it."""
    try:
        found = path.stat()
    except OSError:
        return False
    return found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _refuse_unpassable(text: str) -> None:
    """Raises ValueError for text that no environment variable can hold: a child process would not get it."""
    try:
        if b"\0" not in os.fsencode(text):
            return
    except UnicodeEncodeError:
        pass
    raise ValueError("must be text without NUL characters and surrogates")


class _TextLoader(yaml.SafeLoader):
    """Reads each value as it is written: 010, 1_000, 12:30 and yes are numbers and truths to YAML, which
    would come out as other text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML looks for it here
        first: [(tag, pattern) for tag, pattern in resolvers if tag in _KEPT_TAGS]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _read_file(config_file: str | None, known: Mapping[str, "dataclasses.Field[object]"]) -> dict[str, str]:
    path = (
        Path(config_file) if config_file else next((p for p in map(Path, CONFIG_FILES) if p.is_file()), None)
    )
    if path is None:
        return {}
    try:
        # A subclass of SafeLoader: it makes lists, mappings and texts alone.
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_TextLoader) or {}  # noqa: S506
    except OSError as error:
        raise InvalidSetting(f"{path}: cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"{path}: is not YAML: {_yaml_error(error)}") from None
    if not isinstance(content, dict) or not all(isinstance(part, dict) for part in content.values()):
        raise InvalidSetting(f"{path}: must have sections with settings, as in mongo: {{uri: …}}")
    found = {}
    for section, part in content.items():
        for key, value in part.items():
            name = f"{section}_{key}".upper()
            if name not in known:
                raise InvalidSetting(f"{path}: {section}.{key} is not a setting")
            try:
                found[name] = _text_of(value, known[name].metadata["list_text"])
            except ValueError as error:
                raise InvalidSetting(f"{path}: {section}.{key} {error}") from None
    return found


def _text_of(value: object, list_text: Callable[[Sequence[str]], str]) -> str:
    """The text that a value of the file stands for: its parser's. Raises ValueError."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return list_text(value)
    raise ValueError("must be a text, or a list of texts")


def _yaml_error(error: Exception) -> str:
    """Says what is wrong and where, without quoting the line: a setting there may be a secret."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{error.problem} in line {mark.line + 1}, column {mark.column + 1}"
    return "it holds characters that text does not have"


PR_SET_DUMPABLE = 4
#: In /proc/self/stat, counted from the process's state: where the initial environment begins and ends.
_ENV_START, _ENV_END = 47, 48
#: Secrets beside those among the settings.
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
    conceal_memory()


def conceal_memory() -> None:
    """Makes this process unreadable for others of its user, where that is possible. Raises OSError."""
    if not sys.platform.startswith("linux"):
        return
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
    urls = [settings.mongo_uri, settings.broker, settings.flow_control_url, settings.smtp_url]
    urls += [url for _, url in (*settings.celery_brokers, *settings.celery_result_backends)]
    values = {
        *(read_key(entry).key for entry in settings.api_keys),
        *(key.strip() for key in settings.secrets_key.split(",")),
        settings.oidc_client_secret,
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
