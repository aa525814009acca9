"""Whether a command line of `deploy/` would be understood: parsed by the programs' own parsers, not run."""

import importlib
import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import flower.options  # noqa: F401  (defines Flower's options)
import tornado.options
from celery.bin.celery import celery
from gunicorn.config import Config

from scheduler_app.cli import main as scheduler

ROOT = Path(__file__).parents[3]


def check_command(command: Sequence[str]) -> None:
    """Fails, with the parser's own words, when the command line would not be understood."""
    program, *arguments = command
    match Path(program).name:
        case "celery":
            _check_celery(arguments)
        case "gunicorn":
            _check_gunicorn(arguments)
        case "scheduler":
            _check_scheduler(arguments)
        case "python":
            assert arguments[0] == "-c"
            compile(arguments[1], "<deploy>", "exec")
        case other:
            raise AssertionError(f"a program that nobody here knows: {other}")


def paths_asked(command: Sequence[str]) -> list[str]:
    """The paths of the URLs in a command."""
    return [urlsplit(url).path for url in re.findall(r"http://[^'\"\s]+", " ".join(command))]


def _check_celery(arguments: list[str]) -> None:
    context = celery.make_context("celery", list(arguments))
    name, command, rest = celery.resolve_command(context, [*context._protected_args, *context.args])
    assert command is not None, f"celery has no command {name}"
    # What finds the application by its name, and hands it to the command's own options.
    context.invoked_subcommand = name
    with context:
        context.invoke(celery.callback, **context.params)
    assert context.obj.app.main == "rrule-scheduler"
    if name == "flower":
        for option in rest:
            assert option.lstrip("-").partition("=")[0] in tornado.options.options, option
    else:
        command.make_context(name, rest, parent=context)


def _check_gunicorn(arguments: list[str]) -> None:
    parsed = Config().parser().parse_args(arguments)
    if parsed.config.startswith("python:"):
        # Not imported: it says for the whole process how metrics are counted.
        assert importlib.util.find_spec(parsed.config.removeprefix("python:"))
    else:
        assert (ROOT / parsed.config).is_file()
    module, _, call = parsed.args[0].partition(":")
    assert callable(getattr(importlib.import_module(module), call.removesuffix("()")))


def _check_scheduler(arguments: list[str]) -> None:
    context = scheduler.make_context("scheduler", list(arguments))
    name, command, rest = scheduler.resolve_command(context, [*context._protected_args, *context.args])
    assert command is not None
    command.make_context(name, rest, parent=context)
