"""RRule Scheduler: HTTP callbacks at every occurrence of an RFC 5545 rule."""

from typing import Any

from scheduler_app.version import __version__ as __version__


def __getattr__(name: str) -> Any:
    # `celery -A scheduler_app` asks the package for `app`. It is made on demand, so that the pure
    # domain can be imported without Celery and without settings.
    if name == "app":
        from scheduler_app.loading import without_garbage_collection

        with without_garbage_collection():
            from scheduler_app.broker.app import current

            return current()
    raise AttributeError(name)
