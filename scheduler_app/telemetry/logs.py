"""Structured logs: a stable event name beside each sentence, ids bound as fields.

`log.info("schedule.created", message="…", schedule_id=…)` writes one JSON object per line, or a readable
line on a terminal. Lines of libraries pass through the same formatter. Tracebacks never show local variables,
which may hold secrets. Control characters are shown as escapes.
"""

import logging
import sys
from collections.abc import MutableMapping
from io import StringIO
from typing import Any, Literal, TextIO

from scheduler_app.domain.text import visible
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
    """Undoes `bind_log_fields`; what is not bound is no error."""
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
