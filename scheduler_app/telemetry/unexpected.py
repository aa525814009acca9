"""Unexpected errors in threads that must continue: counted, and each kind logged once an hour."""

from collections.abc import Callable
from typing import Final

from prometheus_client import Counter

from scheduler_app.telemetry import get_logger

LOG_EVERY_SECONDS: Final = 3600.0
#: Steps are few, and so are classes of errors; kinds beyond this share one hour.
MAX_KINDS: Final = 100

_Kind = tuple[str, type[Exception]]
_OTHER: Final[_Kind] = ("other", Exception)


class UnexpectedErrors:
    """Belongs to one thread, or to several that share its steps: then a line may be logged twice, and a count
    in a line may be one too low. The counter is exact."""

    def __init__(self, counter: Counter, event: str, message: str, *, monotonic: Callable[[], float]) -> None:
        """`counter` has the label `step`; `event` and `message` are those of the log line; `monotonic`
        returns seconds."""
        self._counter = counter
        self._event = event
        self._message = message
        self._monotonic = monotonic
        self._logged_at: dict[_Kind, float] = {}
        self._only_counted: dict[_Kind, int] = {}

    def note(self, step: str, error: Exception, **facts: object) -> None:
        """Counts an error of a step. Its traceback and `facts` are logged once an hour for each class of
        errors, with the number of those that were only counted since the last line (`only_counted`)."""
        self._counter.labels(step).inc()
        kind = (step, type(error))
        if kind not in self._logged_at and len(self._logged_at) >= MAX_KINDS:
            kind = _OTHER
        now, logged_at = self._monotonic(), self._logged_at.get(kind)
        if logged_at is not None and now - logged_at < LOG_EVERY_SECONDS:
            self._only_counted[kind] = self._only_counted.get(kind, 0) + 1
            return
        self._logged_at[kind] = now
        if omitted := self._only_counted.pop(kind, 0):
            facts["only_counted"] = omitted
        get_logger(__name__).error(self._event, message=self._message, step=step, exc_info=error, **facts)
