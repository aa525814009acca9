"""Celery: its application, its task, the way to publish, and what we mend of it."""

from scheduler_app.broker.app import Application, current, make_app
from scheduler_app.broker.publisher import CeleryPublisher

__all__ = ["Application", "CeleryPublisher", "current", "make_app"]
