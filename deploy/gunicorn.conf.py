"""`gunicorn -c deploy/gunicorn.conf.py 'scheduler_app.api:create_app()'`: the same as under `scheduler up`.

API_HOST and API_PORT say where it listens, LOG_LEVEL and LOG_FORMAT how it logs. What is set below the
import takes precedence.
"""

from scheduler_app.cli.gunicorn_config import *  # noqa: F403
