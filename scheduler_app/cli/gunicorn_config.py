"""How gunicorn serves the API: `gunicorn -c …/gunicorn_config.py 'api:create_app()'` reads this file."""

import os
import sys
from pathlib import Path
from typing import Any

from gunicorn.config import Config
from gunicorn.glogging import Logger

from scheduler_app.cli import metrics_folder
from scheduler_app.config import InvalidSetting, load_settings

# The processes count together, in files that whichever of them is scraped adds up. prometheus_client reads
# this when it is imported; a reload (SIGHUP) keeps the files.
_COUNTS = "PROMETHEUS_MULTIPROC_DIR"
if _COUNTS not in os.environ:
    if "prometheus_client" in sys.modules:
        raise SystemExit(
            f"prometheus_client was imported before {_COUNTS} was set: each process would count alone"
        )
    os.environ[_COUNTS] = str(metrics_folder.make())

from prometheus_client import multiprocess  # noqa: E402

from scheduler_app.telemetry import configure_logs  # noqa: E402

try:
    _settings = load_settings()
except InvalidSetting as error:
    raise SystemExit(str(error)) from None

configure_logs(_settings.log_level, _settings.log_format)


class _OurFormat(Logger):  # type: ignore[misc]
    """Hands gunicorn's lines to the root logger, so that they look like all others."""

    def setup(self, cfg: Config) -> None:
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


_host = f"[{_settings.api_host}]" if ":" in _settings.api_host else _settings.api_host
# For `--access-logfile`. gunicorn's own format has queries and referers, in which people put keys.
access_log_format = '%(h)s %(l)s %(u)s %(t)s "%(m)s %(U)s %(H)s" %(s)s %(b)s "%(a)s"'
bind = f"{_host}:{_settings.api_port}"
loglevel = _settings.log_level
logger_class = _OurFormat

# Threads for what waits for MongoDB; processes for what computes: a rule that is read and a body that is
# checked hold Python's lock. A request takes a thread when it is complete, and leaves it when its answer is:
# what clients are slow at waits in the worker's event loop.
worker_class = "scheduler_app.webserver.worker.BufferingWorker"
workers = _settings.api_processes
threads = 16
#: Of each process, slow ones too; beyond it those that do least are closed for new ones.
worker_connections = 1000
limit_request_line = 8190
limit_request_fields = 100
limit_request_field_size = 8190
keepalive = 30

# Requests are short; what is not done by then will be asked again with the same Idempotency-Key.
graceful_timeout = 10
# A socket in the home directory for remote commands, which nobody here sends.
control_socket_disable = True


#: Its requests are a core's work for a good part of a second.
_BULK = "/api/schedules/bulk"


def pre_request(worker: Any, request: Any) -> None:
    """Connections stay with the process that took them, so that an importer's few could all be one
    process's while the other has nothing to do: the answer to a bulk ends its connection, and the next one
    goes to whichever process is free to take it."""
    if request.path == _BULK:
        request.force_close()


def child_exit(server: Any, worker: Any) -> None:
    """What it counted stays; what it held, such as whether MongoDB answers it, goes."""
    multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]


def on_exit(server: Any) -> None:
    metrics_folder.remove(Path(os.environ[_COUNTS]))
