"""`scheduler import-crontab`: takes a crontab over. Its lines are read as crontab(5) reads them: schedules,
and the environment for the lines below. The command of a line becomes words where no shell is needed,
otherwise a line for one.
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any, Final
from zoneinfo import ZoneInfo

import click

from scheduler_app.cli.client_options import with_client
from scheduler_app.cli.entry_import import (
    Entry,
    EntryImporter,
    NotImportable,
    RefusedEntry,
    import_entries,
    import_options,
    zone_option,
)
from scheduler_app.cli.options import duration
from scheduler_app.cli.output import say
from scheduler_app.client import Json, Scheduler
from scheduler_app.domain.command_action import is_own_variable

#: Beyond these characters a shell may do more than split words.
_PLAIN: Final = re.compile(r"[A-Za-z0-9 \t._+=@%:,/'\"-]+")
_SHELLS: Final = frozenset(("/bin/sh", "/usr/bin/sh", "sh"))
#: First words that are not the name of a program: what POSIX builds into a shell, and its reserved words.
_SHELL_WORDS: Final = (
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
    if not words or words[0] in _SHELL_WORDS or "=" in words[0]:
        return None
    return words


MAX_LINES: Final = 10_000
#: What every imported schedule is tagged with.
TAG: Final = "crontab"
_MAX_NAME: Final = 200
#: Blanks may surround the `=`; a name or a value may be quoted.
_VARIABLE: Final = re.compile(r"""\s*(["']?)([^"'=\s]+)\1\s*=\s*(.*?)\s*\Z""")
_FIELD_COUNT: Final = 5
#: Variables that speak to cron, and not to a command.
_CRON_VARIABLES: Final = frozenset(
    ("MAILTO", "MAILFROM", "CRON_TZ", "SHELL", "RANDOM_DELAY", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrontabLine(Entry):
    """What a line runs, and when. Its name says where it stands in the file."""

    command: str = field(repr=False)
    action: Json = field(repr=False)


def read_crontab(
    lines: Iterable[str], timezone: str, *, user_column: bool
) -> Iterator[CrontabLine | RefusedEntry]:
    """`timezone` is that of the machine; `CRON_TZ` sets another one for the lines below it. With
    `user_column` a user stands before each command, as in /etc/crontab."""
    variables: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for number, text in enumerate(lines, 1):
        line = text.strip(" \t\r\n\ufeff")
        if not line or line.startswith("#"):
            continue
        name = f"line {number}"
        if number > MAX_LINES:
            yield RefusedEntry(
                name, f"a crontab may have {MAX_LINES:,} lines; import the others from another file"
            )
            return
        if match := _VARIABLE.match(line):
            variables[match[2]] = _unquoted(match[3])
            continue
        try:
            yield _line(name, line, variables, timezone, seen, user_column=user_column)
        except NotImportable as error:
            yield RefusedEntry(name, str(error))


def schedule_of(line: CrontabLine, *, timeout_seconds: float) -> Json:
    """The API's fields of the schedule, but its id. As cron does, it tries a command once."""
    return {
        "name": line.command[:_MAX_NAME],
        "tags": [TAG],
        "action": line.action,
        "max_retries": 0,
        "timeout_seconds": timeout_seconds,
        **line.trigger,
    }


def _line(
    name: str,
    line: str,
    variables: dict[str, str],
    timezone: str,
    seen: Counter[str],
    *,
    user_column: bool,
) -> CrontabLine:
    """Raises NotImportable."""
    expression, rest = _expression(line)
    notes = []
    if user_column:
        user, rest = _first_word(rest)
        if not rest:
            raise NotImportable("it has no command after the user; has this crontab no column of users?")
        notes.append(f"it ran as {user}; here the worker's COMMAND_USER runs it")
    command = _command(rest)
    zone = _zone(variables.get("CRON_TZ", timezone))
    own = sorted(each for each in variables if is_own_variable(each))
    if own:
        notes.append(f"{', '.join(own)} of the crontab is left out: commands have their worker's")
    if variables.get("MAILTO"):
        notes.append(
            f"nothing is mailed to {variables['MAILTO']}: the event's history keeps what the command prints"
        )
    if variables.get("RANDOM_DELAY", "0") != "0":
        notes.append("RANDOM_DELAY is left out; jitter_seconds does the same")
    env = {
        each: value for each, value in variables.items() if each not in _CRON_VARIABLES and each not in own
    }
    seen[command] += 1
    return CrontabLine(
        name=name,
        command=command,
        trigger={"cron": expression, "timezone": zone},
        action=action_of(command, variables.get("SHELL", "/bin/sh"), env),
        key=command if seen[command] == 1 else f"{command} ({seen[command]})",
        notes=tuple(notes),
    )


def _expression(line: str) -> tuple[str, str]:
    """The time of a line, and what follows it. Raises NotImportable."""
    # cronie writes nothing to syslog about a line that begins with a hyphen.
    words = line.removeprefix("-").split(maxsplit=_FIELD_COUNT)
    if line.startswith("@"):
        shorthand, rest = _first_word(line)
        if shorthand.lower() == "@reboot":
            raise NotImportable(
                "@reboot is no time; let what starts the machine call `scheduler trigger`, or give it a time"
            )
        expression = shorthand.lower()
    elif len(words) > _FIELD_COUNT:
        expression, rest = " ".join(words[:_FIELD_COUNT]), words[_FIELD_COUNT]
    else:
        raise NotImportable("it is neither five fields and a command, nor NAME=value")
    if not rest:
        raise NotImportable("it has no command")
    return expression, rest


def _first_word(text: str) -> tuple[str, str]:
    """The first word of a text, and what follows it; either may be empty."""
    parts = text.split(maxsplit=1)
    return parts[0] if parts else "", parts[1] if len(parts) > 1 else ""


def _command(text: str) -> str:
    """The command of a line: a `%` ends it, and a backslash takes that meaning from it. Raises
    NotImportable."""
    parts = re.split(r"(?<!\\)%", text, maxsplit=1)
    if len(parts) > 1:
        raise NotImportable(
            "what follows % is its standard input, and commands have none here; write"
            " `printf … | command`, or \\% for a percent sign"
        )
    return text.replace("\\%", "%").strip()


def _zone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (ValueError, OSError, KeyError):
        raise NotImportable(f"CRON_TZ={name[:50]} is no zone of IANA's") from None


def _unquoted(value: str) -> str:
    """cron takes quotes at both ends away, and expands no variable."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


_SYSTEM_CRONTABS = ("/etc/crontab", "/etc/cron.d/")


@click.command("import-crontab")
@click.argument("file", type=click.File(encoding="utf-8"))
@zone_option("That of the machine whose crontab it is; CRON_TZ in the file goes before.", required=True)
@click.option(
    "--user-column/--no-user-column",
    default=None,
    help="A user stands before each command.  [default: in /etc/crontab and /etc/cron.d]",
)
@click.option(
    "--timeout",
    type=duration,
    default="5m",
    show_default=True,
    help="Ends a command that runs for longer, which cron does not; 5m is the most.",
)
@import_options("cron")
@with_client
def import_crontab(
    scheduler: Scheduler,
    file: IO[str],
    timezone: str,
    user_column: bool | None,
    timeout: int,
    **how: Any,
) -> None:
    """Create a schedule, with an action command, of each line of the crontab FILE (- for standard input).

    `NAME=value` lines become variables of the commands below them. Workers run what ALLOWED_COMMANDS allow:
    --dry-run shows patterns that suffice. What is imported a second time stays as it is; a line is known by
    its command. What cannot be taken over is named with the reason, and the exit status is 1.
    """
    if user_column is None:
        user_column = str(file.name).startswith(_SYSTEM_CRONTABS)
    patterns: dict[str, None] = {}

    def found() -> Iterator[CrontabLine | RefusedEntry]:
        for line in read_crontab(file, timezone, user_column=bool(user_column)):
            if isinstance(line, CrontabLine) and (pattern := pattern_of(line.action)):
                patterns[pattern] = None
            yield line

    fields_of = partial(schedule_of, timeout_seconds=timeout)
    try:
        import_entries(EntryImporter(scheduler, fields_of, "", **how), found())
    finally:
        if how["dry_run"] and patterns:
            allowed = shlex.quote(json.dumps(list(patterns), ensure_ascii=False))
            say(f"ALLOWED_COMMANDS={allowed}", err=True)
