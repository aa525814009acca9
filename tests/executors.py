"""The executor of callbacks, as a worker of theirs makes it."""

from scheduler_app.actions.kind import Executors, make_executors
from scheduler_app.actions.registry import KINDS
from scheduler_app.config import Settings


def executors(*, origin_concurrency: int = 200, networks: str = "127.0.0.0/8") -> Executors:
    """They may reach loopback."""
    settings = Settings(callback_allowed_networks=networks, callback_origin_concurrency=origin_concurrency)
    return make_executors(settings, [KINDS["http"]])
