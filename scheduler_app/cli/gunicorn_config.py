"""How gunicorn serves the API: `gunicorn -c …/gunicorn_config.py 'api:create_app()'` reads this file."""

from gunicorn.config import Config
from gunicorn.glogging import Logger

from scheduler_app.config import InvalidSetting, load_settings
from scheduler_app.telemetry import configure_logs

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
bind = f"{_host}:{_settings.api_port}"
loglevel = _settings.log_level
logger_class = _OurFormat

# A request waits for MongoDB and hardly computes: one process with threads, and one pool of connections.
worker_class = "gthread"
threads = 16
keepalive = 30

# Requests are short; what is not done by then will be asked again with the same Idempotency-Key.
graceful_timeout = 10
# A socket in the home directory for remote commands, which nobody here sends.
control_socket_disable = True
