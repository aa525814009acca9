"""Reads the settings from flags, the environment and the configuration file.

A value is taken from the first place that has one: a flag, the environment, the configuration file
(`--config`, then `./config.yaml`, then `./config/config.yaml`), the default. In the file a setting stands
under its section: `PREQUEUER_TICKER_INTERVAL_SECONDS` is `prequeuer: {ticker_interval_seconds: …}`.
"""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from scheduler_app.config.settings import InvalidSetting, Settings, names, refuse_impossible

CONFIG_FILES = ("config.yaml", "config/config.yaml")


def load_settings(
    config_file: str | None = None,
    overrides: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Reads the settings from `config_file`, or from the first of `CONFIG_FILES` that exists, from `environ`
    (by default the process's) and from `overrides` (flags, under the environment's names). Raises
    InvalidSetting."""
    known = names()
    environ = os.environ if environ is None else environ
    raw = _read_file(config_file, known)
    raw |= {name: environ[name] for name in known if environ.get(name, "") != ""}
    for name, value in (overrides or {}).items():
        if name not in known:
            raise InvalidSetting(f"{name} is not a setting")
        raw[name] = value
    values: dict[str, Any] = {}
    for name, text in raw.items():
        try:
            values[known[name].name] = known[name].metadata["parse"](text)
        except ValueError as error:
            raise InvalidSetting(f"{name} {error}") from None
    settings = Settings(**values, given=frozenset(raw))
    refuse_impossible(settings)
    return settings


def _read_file(config_file: str | None, known: Collection[str]) -> dict[str, str]:
    path = (
        Path(config_file) if config_file else next((p for p in map(Path, CONFIG_FILES) if p.is_file()), None)
    )
    if path is None:
        return {}
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
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
            found[name] = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return found


def _yaml_error(error: Exception) -> str:
    """Says what is wrong and where, without quoting the line: a setting there may be a secret."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{error.problem} in line {mark.line + 1}, column {mark.column + 1}"
    return "it holds characters that text does not have"
