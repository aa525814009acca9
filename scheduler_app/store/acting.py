"""Whose act a thread is at work on: set once at the door, and read where a change is written.

Between the two lie use cases that do not care who asks, and a hundred methods that would hand it on."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from scheduler_app.domain.act import SCHEDULERS_OWN, Act

_current: ContextVar[Act] = ContextVar("act", default=SCHEDULERS_OWN)


def current_act() -> Act:
    """That of this thread; the scheduler's own where no door has said anything else."""
    return _current.get()


@contextmanager
def acting(act: Act) -> Iterator[None]:
    """Everything that this thread changes inside of it is part of this act."""
    token = _current.set(act)
    try:
        yield
    finally:
        _current.reset(token)
