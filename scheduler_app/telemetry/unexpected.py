"""Errors of our own code in threads that must go on: counted, and each kind logged once."""

from prometheus_client import Counter

from scheduler_app.telemetry import get_logger


class UnexpectedErrors:
    """Belongs to one thread, or to several that share its steps. Steps are few, and so are classes of errors:
    what is remembered is bounded by them."""

    def __init__(self, counter: Counter, event: str, message: str) -> None:
        """`counter` has the label `step`; `event` and `message` are those of the log line."""
        self._counter = counter
        self._event = event
        self._message = message
        self._logged: set[tuple[str, type[Exception]]] = set()

    def note(self, step: str, error: Exception, **facts: object) -> None:
        """Counts an error of a step. Its traceback and `facts` are logged for the first of its class."""
        self._counter.labels(step).inc()
        kind = (step, type(error))
        if kind not in self._logged:
            self._logged.add(kind)
            get_logger(__name__).error(self._event, message=self._message, step=step, exc_info=error, **facts)
