"""gunicorn's configuration for the API.

Used as `gunicorn --config python:scheduler_app.cli.gunicorn_config 'scheduler_app.api:create_app()'`.
"""

import logging
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def _forget_working_folder() -> None:
    """Takes the working folder out of the module search path again, in front of which gunicorn puts it: a
    `redis.py` of another project there would be imported in place of the library."""
    asked_for = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    here = os.path.realpath(os.getcwd())
    if os.path.realpath(sys.path[0]) == here and here not in map(os.path.realpath, asked_for):
        del sys.path[0]


if "gunicorn.app.wsgiapp" in sys.modules:
    # Before the imports below. gunicorn puts it there a second time afterwards: see `on_starting`.
    _forget_working_folder()

from gunicorn.config import Config  # noqa: E402
from gunicorn.glogging import Logger  # noqa: E402

from scheduler_app.cli import metrics_folder  # noqa: E402
from scheduler_app.config import InvalidSetting, conceal_secrets, load_settings  # noqa: E402

# All processes write their counters to files, and the process that is scraped adds them up. prometheus_client
# reads this variable when it is imported; a reload (SIGHUP) keeps the files.
_METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
if _METRICS_FOLDER not in os.environ:
    if "prometheus_client" in sys.modules:
        raise SystemExit(
            f"prometheus_client was imported before {_METRICS_FOLDER} was set: counters would not be shared"
        )
    os.environ[_METRICS_FOLDER] = str(metrics_folder.make())

from prometheus_client import multiprocess  # noqa: E402

from scheduler_app.health.startup import refuse_to_start  # noqa: E402
from scheduler_app.loading import settle_heap, without_garbage_collection  # noqa: E402
from scheduler_app.telemetry import configure_logs, is_json  # noqa: E402
from scheduler_app.webserver.limits import THREADS  # noqa: E402

try:
    _settings = load_settings()
except InvalidSetting as error:
    metrics_folder.remove(Path(os.environ[_METRICS_FOLDER]))
    refuse_to_start(str(error))
conceal_secrets(_settings)

configure_logs(_settings.log_level, _settings.log_format)
logging.captureWarnings(is_json(_settings.log_format))


class _RootLogger(Logger):  # type: ignore[misc]
    """Passes gunicorn's lines to the root logger, so that they have the format of all others."""

    def setup(self, cfg: Config) -> None:
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


_host = f"[{_settings.api_host}]" if ":" in _settings.api_host else _settings.api_host
# For `--access-logfile`. gunicorn's own format shows queries and referers, which may hold keys.
access_log_format = '%(h)s %(l)s %(u)s %(t)s "%(m)s %(U)s %(H)s" %(s)s %(b)s "%(a)s"'
bind = f"{_host}:{_settings.api_port}"
loglevel = _settings.log_level
logger_class = _RootLogger

# Threads for requests that wait for MongoDB; processes for those that compute, because parsing a rule or a
# body holds Python's lock. A request takes a thread once it is complete and gives it back when its answer is
# computed: slow clients are waited for in the worker's event loop.
worker_class = "scheduler_app.webserver.worker.WaitressWorker"
workers = _settings.api_processes
threads = THREADS
#: For each process; when there are more, the least active connections are closed for new ones.
worker_connections = 1000
limit_request_line = 8190
limit_request_fields = 100
limit_request_field_size = 8190
keepalive = 30

# Requests are short; a client repeats one that is cut off, with the same Idempotency-Key.
graceful_timeout = 10
# gunicorn would open a socket in the home directory for remote commands, which nothing here sends.
control_socket_disable = True


def on_starting(server: Any) -> None:
    """Loads the modules of the application before its processes fork: they share that memory, and none of
    them spends a second of CPU on it, at the start or when gunicorn replaces one. The application itself is
    made in each process, because its connections and threads would not survive a fork. New code needs a
    restart of gunicorn."""
    _forget_working_folder()
    with without_garbage_collection():
        module = import_module(server.app.app_uri.partition(":")[0])
    _try_out(getattr(module, "check_settings", None))


def _try_out(check: Callable[[], None] | None) -> None:
    """Ends gunicorn where the application refuses its settings. That is tried in one process that ends
    afterwards: each process of the API would say the same sentence, and gunicorn add its traceback."""
    if check is None:
        return
    trial = os.fork()
    if trial == 0:
        try:
            check()
        except SystemExit as refusal:
            os._exit(refusal.code if isinstance(refusal.code, int) else 1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(trial, 0)[1])
    if status != 0:
        metrics_folder.remove(Path(os.environ[_METRICS_FOLDER]))
        sys.exit(status)


def post_worker_init(worker: Any) -> None:
    """Ends a process's start: the application is loaded."""
    settle_heap()


def child_exit(server: Any, worker: Any) -> None:
    """Keeps the counters of a process that has ended, and drops its gauges."""
    multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]


def on_exit(server: Any) -> None:
    metrics_folder.remove(Path(os.environ[_METRICS_FOLDER]))
