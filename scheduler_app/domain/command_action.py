"""The action of the kind `command`, a program that a worker runs, and the patterns of ALLOWED_COMMANDS, which
say what may be run.
"""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Final

from scheduler_app.domain.action import Action
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.masking import MASK

COMMAND: Final = "command"
MAX_WORDS = 256
MAX_COMMAND_BYTES = 32 * 1024
MAX_VARIABLES = 50
MAX_VARIABLES_BYTES = 16 * 1024
_PREFIX = "command:"
_MAX_PROGRAM = 100


@dataclass(frozen=True, slots=True)
class CommandAction:
    """A program with its arguments, or a line for the shell. Its repr leaves out the environment's values,
    and the arguments, which people put passwords into."""

    command: tuple[str, ...] = field(repr=False)
    """The program and its arguments; of a shell's command the line alone."""
    shell: bool = False
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Variables beside those that every command has; their values are secret."""
    retry_exit_codes: tuple[int, ...] | None = None
    """The exit statuses after which another attempt follows; None: all but 0."""

    @property
    def kind(self) -> str:
        return COMMAND

    @property
    def isolation_key(self) -> str:
        """The program's name, without its folder and arguments."""
        words = self.command[0].split(maxsplit=1) if self.shell and self.command else self.command
        return _PREFIX + (PurePosixPath(words[0]).name[:_MAX_PROGRAM] if words else "")

    @property
    def destination(self) -> None:
        return None

    @property
    def completion_problem(self) -> str | None:
        return "is for HTTP requests and Celery tasks: a command completes when it exits"

    def unmasked(self, old: Action | None) -> "CommandAction":
        """Returns the action with the old values where this one has masks for them.

        Another command could print what a mask stands for, so the command has to be the old one. Raises
        InvalidField.
        """
        if not any(value == MASK for _, value in self.env):
            return self
        if not isinstance(old, CommandAction) or (old.command, old.shell) != (self.command, self.shell):
            raise InvalidField(
                "action", f"env: {MASK} stands for a value only while the command stays the same"
            )
        values = dict(old.env)
        missing = [name for name, value in self.env if value == MASK and name not in values]
        if missing:
            raise InvalidField("action", f"env: {missing[0]} has no value yet that {MASK} could stand for")
        env = tuple((name, values[name] if value == MASK else value) for name, value in self.env)
        return replace(self, env=env)


SHELL = "shell:"
ANYTHING = "*"
MAX_PATTERNS = 200
#: What every command's environment has, whatever a schedule gives.
OWN_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "LANG")
OWN_PREFIX = "SCHEDULER_"
#: What a `*` inside a word stands for: no folder, and nothing that a shell gives a meaning to.
_PART = r"[A-Za-z0-9._+=@%:,-]+"
#: What a shell gives a meaning to. A line with one of them is more than its words.
_SPECIAL = re.compile(r"[^A-Za-z0-9 ._+=@%:,/\-'\"]")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,63})=\Z")
#: A pattern whose `*` stands for a shell among others allows whatever a shell can do.
_SHELLS = ("sh", "/bin/sh", "/usr/bin/sh")
_WORD_OF_NO_PATTERN = "0f0f0f0f"


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """One pattern: the variables that a schedule may set, as in `MONTH= REGION= make report *`, and the words
    of a command, where `*` is one or more words, or a part of one word."""

    text: str
    """Without the variables."""
    shell: bool
    variables: frozenset[str]
    words: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "CommandPattern":
        """Raises ValueError for text that no command could match."""
        shell = text.startswith(SHELL)
        line = text.removeprefix(SHELL).strip()
        variables = set()
        while match := _VARIABLE.match(line.split(maxsplit=1)[0] if line else ""):
            if is_own_variable(match[1]):
                raise ValueError(f"{text!r} names {match[1]}, which every command has from its worker")
            variables.add(match[1])
            line = line[match.end() :].lstrip()
        words = tuple(shlex.split(line))
        if not words:
            raise ValueError(f"{text!r} names no command")
        if not shell and words[0].startswith(SHELL):
            raise ValueError(f"{text!r} must begin with {SHELL}, in front of its variables")
        return cls(line, shell, frozenset(variables), words)

    @property
    def allows_any_program(self) -> bool:
        """Whether its `*` stands for the name of any program, or for that of a shell among others."""
        program = self.words[0]
        if ANYTHING not in program:
            return False
        if not program.strip(ANYTHING):
            return True
        return any(self._matches((each, "-c", _WORD_OF_NO_PATTERN)) for each in _SHELLS)

    def allows(self, action: CommandAction) -> bool:
        """Whether the whole of the command matches, and the pattern names its variables. A shell's line also
        matches the same text without a `*`."""
        return self.allows_words_of(action) and not self.unnamed_variables(action)

    def unnamed_variables(self, action: CommandAction) -> list[str]:
        """The variables of the command that the pattern does not name."""
        return [name for name, _ in action.env if name not in self.variables]

    def allows_words_of(self, action: CommandAction) -> bool:
        if action.shell != self.shell:
            return False
        if not action.shell:
            return self._matches(action.command)
        line = action.command[0] if action.command else ""
        if self.text == ANYTHING:
            return bool(line.strip())
        if ANYTHING not in self.text and line == self.text:
            return True
        if _SPECIAL.search(line):
            return False
        try:
            return self._matches(shlex.split(line))
        except ValueError:  # a quote that is not closed
            return False

    def _matches(self, command: Sequence[str]) -> bool:
        # The prefixes of the command, by their lengths, that the words of the pattern so far match.
        reached = {0}
        for word in self.words:
            if word == ANYTHING:
                first = min(reached, default=len(command))
                reached = set(range(first + 1, len(command) + 1))
            else:
                reached = {at + 1 for at in reached if at < len(command) and _is_like(word, command[at])}
        return len(command) in reached


def _is_like(pattern: str, word: str) -> bool:
    """Whether a word is what one of a pattern says. `..` would lead out of the folder that it names."""
    if ANYTHING not in pattern:
        return word == pattern
    if ".." in word.split("/"):
        return False
    return re.fullmatch(_PART.join(map(re.escape, pattern.split(ANYTHING))), word) is not None


@dataclass(frozen=True, slots=True)
class AllowedCommands:
    """All patterns of a process; without any, it allows nothing."""

    patterns: tuple[CommandPattern, ...]

    @classmethod
    def parse(cls, texts: Sequence[str]) -> "AllowedCommands":
        """Raises ValueError."""
        return cls(tuple(CommandPattern.parse(text) for text in texts))

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def allow(self, action: CommandAction) -> bool:
        return any(pattern.allows(action) for pattern in self.patterns)

    def refusal(self, action: CommandAction) -> str | None:
        """Why the command may not run, and what the operator can do; None if it may."""
        near = [pattern for pattern in self.patterns if pattern.allows_words_of(action)]
        if not near:
            return "ALLOWED_COMMANDS do not allow the command; ask the operator for a pattern"
        nearest = min(near, key=lambda pattern: len(pattern.unnamed_variables(action)))
        unnamed = nearest.unnamed_variables(action)
        if not unnamed:
            return None
        shown = " ".join([*(f"{name}=" for name in [*sorted(nearest.variables), *unnamed]), nearest.text])
        prefix = SHELL if nearest.shell else ""
        return (
            f"env: no pattern of ALLOWED_COMMANDS that allows the command names {', '.join(unnamed)}; leave"
            f" that out, or ask the operator for the pattern {prefix}{shown}"
        )


def is_own_variable(name: str) -> bool:
    """Whether every command has that variable from its worker."""
    return name in OWN_VARIABLES or name.startswith(OWN_PREFIX)


def opening_patterns(texts: Sequence[str]) -> list[str]:
    """Those of the patterns that allow any program."""
    return [text for text in texts if CommandPattern.parse(text).allows_any_program]


def parse_patterns(value: str) -> tuple[str, ...]:
    """The patterns of the setting: a JSON list, or text separated by commas.

    Raises ValueError, which completes a sentence that begins with the setting's name.
    """
    if value.lstrip().startswith("["):
        try:
            texts = json.loads(value)
        except ValueError as error:
            raise ValueError(
                f"must be patterns separated by commas, or a JSON list of them: {error}"
            ) from None
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("must be a list of texts")
    else:
        texts = [text.strip() for text in value.split(",") if text.strip()]
    if len(texts) > MAX_PATTERNS:
        raise ValueError(f"must not have more than {MAX_PATTERNS} patterns")
    try:
        AllowedCommands.parse(texts)
    except ValueError as error:
        raise ValueError(f"must be patterns of commands: {error}") from None
    return tuple(texts)
