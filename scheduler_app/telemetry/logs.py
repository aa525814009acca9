"""Structured logs: a stable event name beside each sentence, ids bound as fields.

`log.info("schedule.created", message="…", schedule_id=…)` writes one JSON object per line, or a readable
line on a terminal. Lines of libraries pass through the same formatter. Tracebacks never show local
variables, which may hold secrets. Control characters are shown as escapes. Unexpected errors in threads
that must continue are counted, and each kind is logged once an hour.
"""

import logging
import sys
from collections.abc import Callable, MutableMapping
from io import StringIO
from typing import Any, Final, Literal, TextIO

from prometheus_client import Counter

from scheduler_app.domain.masking import visible
from scheduler_app.telemetry.plain_structlog import structlog

Style = Literal["auto", "json", "text"]
#: Libraries whose INFO lines do not concern an operator.
QUIET = ("pymongo", "kombu", "amqp", "urllib3", "celery.app.trace", "celery.worker.strategy")

_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configure_logs(level: str, style: Style = "auto") -> None:
    """Sends all logs of this process to stderr; `level` and `style` have the values of LOG_LEVEL and
    LOG_FORMAT."""
    text = not is_json(style)
    to_text = _console_renderer(colors=sys.stderr.isatty())
    to_json = structlog.processors.JSONRenderer(default=str, ensure_ascii=False)
    final: list[Any] = (
        [_visible_values, to_text] if text else [structlog.processors.format_exc_info, to_json, _visible_line]
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name, *_SHARED],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *final],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def is_json(style: Style) -> bool:
    """Whether `configure_logs` writes JSON for this value of LOG_FORMAT."""
    return style == "json" or (style == "auto" and not sys.stderr.isatty())


def _console_renderer(*, colors: bool) -> structlog.dev.ConsoleRenderer:
    # By default structlog uses rich's tracebacks, which print the local variables of every frame.
    return structlog.dev.ConsoleRenderer(colors=colors, pad_event_to=24, exception_formatter=_plain_traceback)


def _visible_values(_: object, __: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escapes values before the renderer adds its colors, which are escape sequences, too."""
    return {name: visible(value) if isinstance(value, str) else value for name, value in fields.items()}


def _visible_line(_: object, __: str, line: str) -> str:
    return visible(line)


def _plain_traceback(out: TextIO, exc_info: Any) -> None:
    plain = StringIO()
    structlog.dev.plain_traceback(plain, exc_info)
    out.write(visible(plain.getvalue()))


def bind_log_fields(**fields: object) -> None:
    """Adds fields to every line that this thread logs from now on, until `unbind_log_fields`."""
    structlog.contextvars.bind_contextvars(**fields)


def unbind_log_fields(*names: str) -> None:
    """Undoes `bind_log_fields`; fields that are not bound are ignored."""
    structlog.contextvars.unbind_contextvars(*names)


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger


# Used until a process configures its logs, and by commands, which never do. structlog's own default prints
# tracebacks with local variables, to standard output.
structlog.configure(
    processors=[*_SHARED, _visible_values, _console_renderer(colors=False)],
    logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
)


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
