"""The description of a service: a program, and how the supervisor runs it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


def _always() -> bool:
    return True


@dataclass(frozen=True)
class Service:
    """`tier` gives the order: a tier starts when all services below it are ready, and ends before them."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    tier: int
    #: Seconds between SIGTERM and SIGKILL.
    grace: float
    #: Called a few times a second until it returns True; each call takes about a second at most.
    ready: Callable[[], bool] = _always
    #: The file that gets every line, for a service of which the console shows only errors.
    #: `error_line` returns the text to show for a line, None for a line that reports no error.
    log: Path | None = None
    error_line: Callable[[str], str | None] | None = None
