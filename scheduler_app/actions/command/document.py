"""A command as MongoDB keeps it: `{type, command: [word], shell, env: [[name, value]], retry_exit_codes}`.

Secret are the values of the environment.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler_app.actions.kind import Document
from scheduler_app.domain.command_action import COMMAND, CommandAction
from scheduler_app.domain.field_types import Corrupt, flag, items, text, whole

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


def to_document(action: CommandAction) -> Document:
    return {
        "type": COMMAND,
        "command": list(action.command),
        "shell": action.shell,
        "env": [[name, value] for name, value in action.env],
        "retry_exit_codes": None if action.retry_exit_codes is None else list(action.retry_exit_codes),
    }


def from_document(document: Mapping[str, Any]) -> CommandAction:
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


def split(document: Document) -> tuple[Document, Document]:
    env = document["env"]
    if not env:
        return document, {}
    return document | {"env": [[name, None] for name, _ in env]}, {"env": [value for _, value in env]}


def join(document: Document, secrets: Mapping[str, Any]) -> Document:
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
