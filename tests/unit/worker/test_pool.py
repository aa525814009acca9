"""A worker whose command line asks for a pool that cannot deliver does not start."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
import pytest
from celery.bin.celery import celery
from celery.bin.worker import worker
from celery.concurrency.thread import TaskPool as ThreadPool

from scheduler_app.config import InvalidSetting
from scheduler_app.worker.process import check_pool


@contextmanager
def started_by(*options: str, named: tuple[str, ...] = ("-A", "scheduler_app")) -> Iterator[None]:
    """As if this process were `celery -A scheduler_app worker` with these options; `named` may be empty,
    where the environment names the application."""
    group = click.Context(celery, info_name="celery")
    with pytest.MonkeyPatch.context() as patch, click.Context(worker, info_name="worker", parent=group):
        patch.setattr(sys, "argv", ["celery", *named, "worker", *options, "--loglevel", "info"])
        yield


@pytest.mark.parametrize(
    ("options", "name"),
    [(("--pool", "solo"), "solo"), (("--pool=processes",), "prefork"), (("-P", "prefork"), "prefork")],
)
@pytest.mark.parametrize("named", [("-A", "scheduler_app"), ()], ids=["named", "of-the-environment"])
def test_another_pool_is_refused_however_it_is_asked_for(
    options: tuple[str, ...], name: str, named: tuple[str, ...]
) -> None:
    # What Celery gives for its own default is the configured pool.
    refused = pytest.raises(InvalidSetting, match=f"--pool {name} cannot deliver callbacks")
    with started_by(*options, named=named), refused:
        check_pool(ThreadPool)


@pytest.mark.parametrize("options", [(), ("--pool", "threads"), ("-P", "threads")])
def test_threads_and_no_answer_are_taken(options: tuple[str, ...]) -> None:
    with started_by(*options):
        check_pool(ThreadPool)


def test_another_pool_is_refused_where_no_command_line_asked_for_it() -> None:
    with pytest.raises(InvalidSetting, match="--pool solo cannot deliver callbacks"):
        check_pool("solo")
