"""The row of commands in the registry of actions."""

import sys
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from scheduler_app.actions.command import document
from scheduler_app.actions.command.validation import check_command
from scheduler_app.actions.executor import Executor
from scheduler_app.actions.kind import ActionKind, Document
from scheduler_app.config import InvalidSetting, Settings, secret_values
from scheduler_app.domain.command_action import COMMAND, CommandAction
from scheduler_app.domain.command_patterns import AllowedCommands
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.queues import COMMANDS

if TYPE_CHECKING:
    from scheduler_app.actions.fields import ActionFields


class CommandKind(ActionKind[CommandAction]):
    """A program that a worker runs. Its isolation key is the program's name; its exit status says how it
    went."""

    name = COMMAND
    without_secrets = document.WITHOUT_SECRETS
    not_for_beats = ("env",)
    in_their_place: ClassVar[Document] = {"env": []}

    def fields(self) -> "ActionFields[CommandAction]":
        from scheduler_app.actions.command.fields import COMMAND_FIELDS

        return COMMAND_FIELDS

    def to_document(self, action: CommandAction) -> Document:
        return document.to_document(action)

    def from_document(self, stored: Mapping[str, Any]) -> CommandAction:
        return document.from_document(stored)

    def split(self, stored: Document) -> tuple[Document, Document]:
        return document.split(stored)

    def join(self, stored: Document, secrets: Mapping[str, Any]) -> Document:
        return document.join(stored, secrets)

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
        from scheduler_app.actions.command.limits import limits_of

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
