"""The row of commands in the registry of actions, and a command as MongoDB keeps it: `{type, command: [word],
shell, env: [[name, value]], retry_exit_codes}`. Secret are the values of the environment.
"""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from scheduler_app.actions.command.validation import check_command
from scheduler_app.actions.kind import ActionKind, Document, Executor
from scheduler_app.config import InvalidSetting, Settings, secret_values
from scheduler_app.domain.command_action import COMMAND, AllowedCommands, CommandAction
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.queues import COMMANDS
from scheduler_app.domain.stored_fields import Corrupt, flag, items, text, whole

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


def document_of(action: CommandAction) -> Document:
    return {
        "type": COMMAND,
        "command": list(action.command),
        "shell": action.shell,
        "env": [[name, value] for name, value in action.env],
        "retry_exit_codes": None if action.retry_exit_codes is None else list(action.retry_exit_codes),
    }


def action_of(document: Mapping[str, Any]) -> CommandAction:
    """Raises Corrupt."""
    codes = document.get("retry_exit_codes")
    return CommandAction(
        command=tuple(
            [
                text(word, "an item of action.command")
                for word in items(document.get("command"), "action.command")
            ]
        ),
        shell=flag(document.get("shell"), "action.shell"),
        env=tuple([_variable(pair) for pair in items(document.get("env"), "action.env")]),
        retry_exit_codes=None
        if codes is None
        else tuple(
            [
                whole(code, "an item of action.retry_exit_codes", most=255)
                for code in items(codes, "action.retry_exit_codes")
            ]
        ),
    )


def split_secrets(document: Document) -> tuple[Document, Document]:
    env = document["env"]
    if not env:
        return document, {}
    return document | {"env": [[name, None] for name, _ in env]}, {"env": [value for _, value in env]}


def join_secrets(document: Document, secrets: Mapping[str, Any]) -> Document:
    """Raises Corrupt."""
    values: Iterator[Any] = iter(items(secrets.get("env", []), "sealed: env"))
    pairs = [items(pair, "an item of action.env") for pair in items(document.get("env"), "action.env")]
    joined = [[pair[0], next(values, None)] if len(pair) == 2 and pair[1] is None else pair for pair in pairs]
    if any(True for _ in values):
        raise Corrupt("action.env and what is sealed of it do not fit together")
    return document | {"env": joined}


def _variable(pair: Any) -> tuple[str, str]:
    if len(items(pair, "an item of action.env")) != 2:
        raise Corrupt("an item of action.env is not a pair of a name and a value")
    return text(pair[0], "a name in action.env"), text(pair[1], "a value in action.env")


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
        return document_of(action)

    def from_document(self, stored: Mapping[str, Any]) -> CommandAction:
        return action_of(stored)

    def split(self, stored: Document) -> tuple[Document, Document]:
        return split_secrets(stored)

    def join(self, stored: Document, secrets: Mapping[str, Any]) -> Document:
        return join_secrets(stored, secrets)

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
