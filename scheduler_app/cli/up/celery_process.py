"""One command of Celery's without all the others: `python -m scheduler_app.cli.up.celery_process beat`.

`python -m celery` loads every command before it runs one, and with them Flower, Tornado and prompt_toolkit: a
seventh of what a worker or a beat costs until it is ready.
"""

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from scheduler_app.loading import without_garbage_collection

_MODULES = {"beat": "celery.bin.beat", "flower": "flower.command", "worker": "celery.bin.worker"}


def main(name: str, arguments: Sequence[str]) -> None:
    """Runs `celery --quiet -A scheduler_app <name> <arguments>`, and ends the process with its status."""
    with without_garbage_collection():
        from celery.bin.base import CLIContext

        from scheduler_app.broker.app import current

        context = CLIContext(app=current(), no_color=None, workdir=None, quiet=True)
        command = getattr(import_module(_MODULES[name]), name)
    # Flower's command looks at the options of the group that it belongs to.
    click.Group("celery", {name: command}).main([name, *arguments], prog_name="celery", obj=context)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
