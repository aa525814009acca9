"""The command of a crontab's line as an action: words where no shell is needed, otherwise a line for one."""

import re
import shlex
from typing import Final

from scheduler_app.client import Json

#: Beyond these characters a shell may do more than split words.
_PLAIN: Final = re.compile(r"[A-Za-z0-9 \t._+=@%:,/'\"-]+")
_SHELLS: Final = frozenset(("/bin/sh", "/usr/bin/sh", "sh"))
#: First words that are no program's name: what POSIX builds into a shell, and its reserved words.
_OF_SHELLS: Final = (
    *(":", ".", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "elif", "else"),
    *("esac", "eval", "exec", "exit", "export", "fc", "fg", "fi", "for", "getopts", "hash", "if", "in"),
    *("jobs", "local", "read", "readonly", "return", "set", "shift", "source", "then", "times", "trap"),
    *("type", "ulimit", "umask", "unalias", "unset", "until", "wait", "while"),
)


def action_of(command: str, shell: str, env: dict[str, str]) -> Json:
    """The action that does what `shell -c command` does."""
    action: Json = {"type": "command"}
    if words := _words(command):
        action["command"] = words
    elif shell in _SHELLS:
        action |= {"command": command, "shell": True}
    else:
        action["command"] = [shell, "-c", command]
    return action | ({"env": env} if env else {})


def pattern_of(action: Json) -> str | None:
    """The pattern of ALLOWED_COMMANDS that allows this command and no other; None if its `*` would be
    one of the pattern's."""
    command = action["command"]
    if any("*" in word for word in command):
        return None
    names = "".join(f"{name}= " for name in sorted(action.get("env", ())))
    return f"shell:{names}{command}" if action.get("shell") else names + shlex.join(command)


def _words(command: str) -> list[str] | None:
    """The words of a command that needs no shell; None if it needs one."""
    if not _PLAIN.fullmatch(command):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if not words or words[0] in _OF_SHELLS or "=" in words[0]:
        return None
    return words
