"""One program of the set, as it is to be run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


def _always() -> bool:
    return True


@dataclass(frozen=True)
class Part:
    """`tier` orders the set: a tier is started when all below it are ready, and is stopped before them."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    tier: int
    #: From SIGTERM to SIGKILL, seconds.
    grace: float
    #: Asked a few times a second until it is true; answers within about a second.
    ready: Callable[[], bool] = _always
    #: Where every line goes when only those that `complaint` rewords are to be shown.
    log: Path | None = None
    complaint: Callable[[str], str | None] | None = None
