"""The only door to MongoDB."""

from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.events.events import Events
from scheduler_app.store.faults import REJECTED, STORE_FAULTS
from scheduler_app.store.mongo import Mongo, answers_within, within
from scheduler_app.store.processes import Processes
from scheduler_app.store.schedules.schedules import Schedules
from scheduler_app.store.store import Store

__all__ = [
    "REJECTED",
    "STORE_FAULTS",
    "Events",
    "Mongo",
    "Processes",
    "Schedules",
    "SecretBox",
    "Store",
    "answers_within",
    "within",
]
