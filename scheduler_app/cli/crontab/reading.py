"""A crontab's lines, as crontab(5) reads them: schedules, and the environment for the lines below."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from scheduler_app.cli.crontab.shell_line import action_of
from scheduler_app.cli.entry_import import NotImportable, Refused
from scheduler_app.client import Json
from scheduler_app.domain.command_patterns import is_own_variable

MAX_LINES: Final = 10_000
#: What every imported schedule is tagged with.
TAG: Final = "crontab"
_MAX_NAME: Final = 200
#: Blanks may surround the `=`; a name or a value may be quoted.
_VARIABLE: Final = re.compile(r"""\s*(["']?)([^"'=\s]+)\1\s*=\s*(.*?)\s*\Z""")
_FIVE: Final = 5
#: Variables that speak to cron, and not to a command.
_OF_CRON: Final = frozenset(
    ("MAILTO", "MAILFROM", "CRON_TZ", "SHELL", "RANDOM_DELAY", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING")
)


@dataclass(frozen=True, slots=True)
class CrontabLine:
    """What a line runs, and when. Its repr leaves out what may be secret."""

    name: str
    """Where it stands in the file."""
    command: str = field(repr=False)
    trigger: Json
    action: Json = field(repr=False)
    key: str = field(repr=False)
    """What tells it from the other lines, however often it is imported."""
    notes: tuple[str, ...] = ()
    enabled: bool = True
    once_after: datetime | None = None


def read_crontab(
    lines: Iterable[str], timezone: str, *, user_column: bool
) -> Iterator[CrontabLine | Refused]:
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
            yield Refused(
                name, f"a crontab may have {MAX_LINES:,} lines; import the others from another file"
            )
            return
        if match := _VARIABLE.match(line):
            variables[match[2]] = _unquoted(match[3])
            continue
        try:
            yield _line(name, line, variables, timezone, seen, user_column=user_column)
        except NotImportable as error:
            yield Refused(name, str(error))


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
    env = {each: value for each, value in variables.items() if each not in _OF_CRON and each not in own}
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
    words = line.removeprefix("-").split(maxsplit=_FIVE)
    if line.startswith("@"):
        shorthand, rest = _first_word(line)
        if shorthand.lower() == "@reboot":
            raise NotImportable(
                "@reboot is no time; let what starts the machine call `scheduler trigger`, or give it a time"
            )
        expression = shorthand.lower()
    elif len(words) > _FIVE:
        expression, rest = " ".join(words[:_FIVE]), words[_FIVE]
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
