"""The row of commands in the registry of actions, and a command as MongoDB keeps it: `{type, command: [word],
shell, env: [[name, value]], retry_exit_codes}`. Secret are the values of the environment.
"""

import sys
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from scheduler_app.actions.command.validation import check_command
from scheduler_app.actions.kind import ActionKind, Document, Executor, joined_values
from scheduler_app.config import InvalidSetting, Settings, secret_values
from scheduler_app.domain.action import COMMANDS
from scheduler_app.domain.command_action import COMMAND, AllowedCommands, CommandAction
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.stored_fields import flag, items, pairs, text, whole

if TYPE_CHECKING:
    from scheduler_app.actions.fields import ActionFields

_WORDS = "$action.command"

#: The program alone is left: people write passwords into arguments, and a shell's line is all of them.
WITHOUT_SECRETS: Document = {
    "type": COMMAND,
    "command": {
        "$cond": [
            {"$and": [{"$isArray": _WORDS}, {"$ne": ["$action.shell", True]}]},
            {"$slice": [_WORDS, 1]},
            {
                "$cond": [
                    {"$isArray": _WORDS},
                    {
                        "$map": {
                            "input": {"$slice": [_WORDS, 1]},
                            "in": {
                                "$cond": [
                                    {"$eq": [{"$type": "$$this"}, "string"]},
                                    {"$first": {"$split": ["$$this", " "]}},
                                    "",
                                ]
                            },
                        }
                    },
                    [],
                ]
            },
        ]
    },
    "shell": {"$eq": ["$action.shell", True]},
    "env": [],
}


class CommandKind(ActionKind[CommandAction]):
    """A program that a worker runs. Its isolation key is the program's name; its exit status says how it
    went."""

    name = COMMAND
    without_secrets = WITHOUT_SECRETS
    not_for_beats = ("env",)
    in_their_place: ClassVar[Document] = {"env": []}

    def fields(self) -> "ActionFields[CommandAction]":
        from scheduler_app.actions.command.fields import COMMAND_FIELDS

        return COMMAND_FIELDS

    def to_document(self, action: CommandAction) -> Document:
        codes = action.retry_exit_codes
        return {
            "type": COMMAND,
            "command": list(action.command),
            "shell": action.shell,
            "env": [[name, value] for name, value in action.env],
            "retry_exit_codes": None if codes is None else list(codes),
        }

    def from_document(self, stored: Mapping[str, Any]) -> CommandAction:
        words = items(stored.get("command"), "action.command")
        codes = stored.get("retry_exit_codes")
        if codes is not None:
            name = "an item of action.retry_exit_codes"
            codes = tuple([whole(code, name, most=255) for code in items(codes, "action.retry_exit_codes")])
        return CommandAction(
            command=tuple([text(word, "an item of action.command") for word in words]),
            shell=flag(stored.get("shell"), "action.shell"),
            env=pairs(stored.get("env"), "action.env"),
            retry_exit_codes=codes,
        )

    def split(self, stored: Document) -> tuple[Document, Document]:
        env = stored["env"]
        if not env:
            return stored, {}
        return stored | {"env": [[name, None] for name, _ in env]}, {"env": [value for _, value in env]}

    def join(self, stored: Document, secrets: Mapping[str, Any]) -> Document:
        return stored | {"env": joined_values(stored, "env", secrets)}

    def checker(self, settings: Settings) -> Callable[[CommandAction], None]:
        """What is returned raises InvalidField("action"). Without ALLOWED_COMMANDS, only workers know which
        commands are allowed."""
        allowed = AllowedCommands.parse(settings.allowed_commands)

        def check(action: CommandAction) -> None:
            check_command(action)
            if allowed and (refusal := allowed.refusal(action)):
                raise InvalidField("action", refusal)

        return check

    def is_served(self, settings: Settings, queues: Collection[str]) -> bool:
        """By workers of the queue of commands, which are for nothing else."""
        return COMMANDS in queues

    def executor(self, settings: Settings, ready: Callable[[], None]) -> Executor:
        if not sys.platform.startswith("linux"):
            raise InvalidSetting(
                "-Q commands: only Linux can end commands for certain; start this worker there"
            )
        from scheduler_app.actions.command.executor import CommandExecutor
        from scheduler_app.actions.command.running import limits_of

        allowed = AllowedCommands.parse(settings.allowed_commands)
        if not allowed:
            raise InvalidSetting(
                "ALLOWED_COMMANDS must have patterns of the commands that this worker may run, such as"
                " 'echo *,/opt/jobs/*'; without any, leave out -Q commands"
            )
        return CommandExecutor(
            allowed,
            limits_of(settings),
            concurrency=settings.command_concurrency,
            ready=ready,
            secrets=secret_values(settings),
        )
