"""Logs documents that cannot be read, which are looked at again and again, once each."""

from typing import Final

from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

#: With more of them it forgets all, and may repeat a report.
MOST_REMEMBERED: Final = 1_000


class CorruptReports:
    """One for each collection of a process. `event` is the log event, `message` what it means; `field` names
    the document in the line."""

    def __init__(self, event: str, message: str, field: str) -> None:
        self._event, self._message, self._field = event, message, field
        self._reported: set[tuple[str, str]] = set()

    def report(self, name: str, reason: str) -> None:
        """Logs it, unless it was logged for the same reason."""
        if (name, reason) in self._reported:
            return
        if len(self._reported) >= MOST_REMEMBERED:
            self._reported.clear()
        self._reported.add((name, reason))
        log.error(self._event, message=self._message, reason=reason, **{self._field: name[:200]})
