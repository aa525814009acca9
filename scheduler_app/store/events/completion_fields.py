"""The checks of an event's `completion`."""

from typing import Any, cast

from scheduler_app.domain.completion import LEAST_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS, Told
from scheduler_app.domain.field_types import fields, flag, instant, items, number, one_of, text, whole
from scheduler_app.domain.retry import MAX_BACKOFF_SECONDS

_HOW = ("completed", "failed", "timed_out")
_MAX_RETRY_MS = int(2 * MAX_BACKOFF_SECONDS * 1000)


def check_completion(value: Any, name: str) -> None:
    """Raises Corrupt for a stored `completion` that no release has written."""
    kept = fields(value, name)
    for token in items(kept.get("tokens"), f"{name}.tokens"):
        text(token, f"an item of {name}.tokens")
    whole(kept.get("attempt"), f"{name}.attempt", least=1)
    number(kept.get("seconds"), f"{name}.seconds", least=LEAST_TIMEOUT_SECONDS, most=MAX_TIMEOUT_SECONDS)
    if kept.get("retry_in_ms") is not None:
        whole(kept["retry_in_ms"], f"{name}.retry_in_ms", most=_MAX_RETRY_MS)
    if kept.get("awaiting") is not None:
        flag(kept["awaiting"], f"{name}.awaiting")
    if kept.get("told") is not None:
        told(kept["told"], f"{name}.told")


def told(value: Any, name: str) -> Told:
    kept = fields(value, name)
    return Told(
        cast(Any, one_of(kept.get("how"), f"{name}.how", _HOW)),
        whole(kept.get("attempt"), f"{name}.attempt"),
        instant(kept.get("at"), f"{name}.at"),
    )
