"""The action of the kind `command`: a program that a worker runs."""

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
