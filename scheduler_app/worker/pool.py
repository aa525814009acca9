"""The pool of a worker's tasks: threads, whatever the command line says."""

import sys
from typing import Any

import click
from celery.concurrency import get_implementation
from celery.concurrency.thread import TaskPool as ThreadPool

from scheduler_app.config import InvalidSetting


def check_pool(pool: Any) -> None:
    """Raises InvalidSetting for a pool that does not share this process's claims, courier and recorder;
    `pool` is a class, or a name as in --pool."""
    found = get_implementation(_pool_asked_for() or pool)
    if not issubclass(found, ThreadPool):
        name = found.__module__.rpartition(".")[2]
        raise InvalidSetting(f"--pool {name} cannot deliver callbacks; leave it out, or give --pool threads")


def _pool_asked_for() -> str | None:
    """The --pool of the command line, word for word. Celery takes `prefork`, its own default, for no answer
    and gives the configured pool instead."""
    command = click.get_current_context(silent=True)
    if command is None or command.parent is None:
        return None  # not started by the command line
    _, words, _ = _parsed(command.parent, sys.argv[1:])
    options, _, _ = _parsed(command, words[1:])
    asked: str | None = options.get("pool")
    return asked


def _parsed(context: click.Context, words: list[str]) -> tuple[dict[str, Any], list[str], Any]:
    return context.command.make_parser(context).parse_args(list(words))
