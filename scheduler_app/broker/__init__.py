"""Messages by Celery: its application and task, the publisher, and a seam for each broker."""

from scheduler_app.broker.app import Application, current, make_app
from scheduler_app.broker.publisher import CeleryPublisher

__all__ = ["Application", "CeleryPublisher", "current", "make_app"]
