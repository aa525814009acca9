"""Deliver: claim, hand over, send, record."""

from scheduler_app.delivery.capacity import Stopping
from scheduler_app.delivery.pipeline import Pipeline

__all__ = ["Pipeline", "Stopping"]
