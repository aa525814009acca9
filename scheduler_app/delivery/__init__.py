"""Deliver: claim, send, record."""

from scheduler_app.delivery.courier import Courier
from scheduler_app.delivery.delivery import Delivery
from scheduler_app.delivery.recorder import Recorder

__all__ = ["Courier", "Delivery", "Recorder"]
