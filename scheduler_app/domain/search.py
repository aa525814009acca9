"""What a search finds."""

import re
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class FoundSchedule:
    """A schedule, and what of it people look for. What its document lacks is empty."""

    id: str
    name: str
    state: str
    tags: tuple[str, ...]
    phrase: str
    url: str


@dataclass(frozen=True, slots=True)
class FoundDestination:
    id: str
    url: str


@dataclass(frozen=True, slots=True)
class FoundEvent:
    id: str
    state: str
    run_time: datetime | None
    schedule_id: str
    """Empty for a message."""


def before_query(url: str) -> str:
    """A URL without its query, which may hold secrets."""
    return re.split(r"[?#]", url, maxsplit=1)[0]
