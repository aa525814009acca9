"""Structured logs: a stable event name beside each sentence, ids bound as fields.

`log.info("schedule.created", message="…", schedule_id=…)` is one JSON object a line, or a readable line on a
terminal. Lines of libraries pass through the same formatter.
"""

import logging
import sys
from typing import Any

import structlog

#: These say at INFO what is no news to an operator.
QUIET = ("pymongo", "kombu", "amqp", "urllib3", "celery.app.trace", "celery.worker.strategy")

_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configure_logs(level: str, style: str = "auto") -> None:
    """Sends every log of this process to stderr; `level` and `style` as in LOG_LEVEL and LOG_FORMAT."""
    text = style == "text" or (style == "auto" and sys.stderr.isatty())
    renderer: Any = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=24)
        if text
        else structlog.processors.JSONRenderer(default=str, ensure_ascii=False)
    )
    final: list[Any] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if not text:
        final.append(structlog.processors.format_exc_info)
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name, *_SHARED], processors=[*final, renderer]
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


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger
