"""Checks a command by itself, before anybody asks whether it is allowed."""

import re

from scheduler_app.domain.command_action import (
    MAX_COMMAND_BYTES,
    MAX_VARIABLES,
    MAX_VARIABLES_BYTES,
    MAX_WORDS,
    CommandAction,
    is_own_variable,
)
from scheduler_app.domain.errors import InvalidField

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")


def check_command(action: CommandAction) -> None:
    """Raises InvalidField("action") for what no system can run."""
    _check_words(action)
    if len(action.env) > MAX_VARIABLES:
        raise InvalidField("action", f"env must not have more than {MAX_VARIABLES} variables")
    if len({name for name, _ in action.env}) < len(action.env):
        raise InvalidField("action", "env has a variable twice")
    for name, value in action.env:
        if not _NAME.match(name):
            raise InvalidField("action", "env: a name must be a letter or _, then letters, digits and _")
        if is_own_variable(name):
            raise InvalidField("action", f"env: every command has {name} from its worker; leave it out")
        if "\0" in value or not _is_utf8(value):
            raise InvalidField("action", f"env: the value of {name} must be text without NUL characters")
    if sum(len(name) + len(value.encode()) for name, value in action.env) > MAX_VARIABLES_BYTES:
        raise InvalidField("action", f"env must not exceed {MAX_VARIABLES_BYTES // 1024} KiB")
    if any(not 1 <= code <= 255 for code in action.retry_exit_codes or ()):
        raise InvalidField("action", "retry_exit_codes must be numbers from 1 to 255")


def _check_words(action: CommandAction) -> None:
    words = action.command
    if not words or not words[0].strip():
        raise InvalidField("action", "command must name a program")
    if len(words) > MAX_WORDS or (action.shell and len(words) != 1):
        raise InvalidField("action", f"command must have 1 to {MAX_WORDS} words; with shell it is one text")
    if any("\0" in word or not _is_utf8(word) for word in words):
        raise InvalidField("action", "command must be text without NUL characters")
    if sum(len(word.encode()) for word in words) > MAX_COMMAND_BYTES:
        raise InvalidField("action", f"command must not exceed {MAX_COMMAND_BYTES // 1024} KiB")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
