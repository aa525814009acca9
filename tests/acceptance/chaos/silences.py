"""Times in which a kill switch or a blackout stops callbacks, and what breaks them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.acceptance.chaos.owed import Owed

#: What is stopped is no longer sent that long after people had the answer, or after a window has begun.
EFFECTIVE_SECONDS = 1.0
#: A worker's clock may be ahead of the receiver's by that much.
AHEAD_SECONDS = 0.05


@dataclass(frozen=True)
class Silence:
    """A time in which nothing that has `tag` is sent; None: nothing at all. Instants are Unix seconds, by the
    answers that people had."""

    since: float
    """The answer to the kill switch, or the beginning of a blackout's window."""
    until: float
    """When the switch was asked to be off, or the end of that window."""
    tag: str | None = None
    skips: bool = False
    """Whether an occurrence within is skipped, and not sent later."""

    def is_of(self, owed: Owed) -> bool:
        return self.tag is None or self.tag in owed.tags

    def broken_by(self, called_at: float) -> bool:
        """Whether a call at that instant should not have been."""
        return self.since + EFFECTIVE_SECONDS < called_at < self.until - AHEAD_SECONDS

    def skips_at(self, moment: datetime) -> bool:
        """Whether an occurrence of then is skipped."""
        return self.skips and self.since <= moment.timestamp() < self.until


def withheld_calls(
    event: Mapping[str, Any], calls: Sequence[float], silences: Sequence[Silence]
) -> list[str]:
    """Calls of an event that should not have been, whatever was killed meanwhile; `silences` are those of its
    schedule. An occurrence that a blackout skips is not called later either."""
    found = []
    for silence in silences:
        found += [
            f"{event['_id']}: called {called_at - silence.since:.3f} s after it was stopped, and"
            f" {silence.until - called_at:.3f} s before it was let go on"
            for called_at in calls
            if silence.broken_by(called_at)
        ]
        if calls and silence.skips_at(event["run_time"]):
            after = min(calls) - event["run_time"].timestamp()
            lines = ", then ".join(line["message"] for line in event["status"])
            found.append(
                f"{event['_id']}: called {after:.3f} s after its time, though a blackout skips it: {lines}"
            )
    return found


def is_skipped(event: Mapping[str, Any], silences: Sequence[Silence]) -> bool:
    """Whether a blackout has rightly skipped it, and it says so."""
    said = event["status"][-1]["message"]
    within = any(silence.skips_at(event["run_time"]) for silence in silences)
    return event["state"] == "skipped" and within and "blackout" in said
