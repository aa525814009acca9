"""The only door to MongoDB."""

from scheduler_app.store.events import Events
from scheduler_app.store.faults import REJECTED, STORE_FAULTS
from scheduler_app.store.mongo import Mongo, within
from scheduler_app.store.nodes import Nodes
from scheduler_app.store.schedules import Schedules
from scheduler_app.store.secrets import Envelope
from scheduler_app.store.store import Store

__all__ = ["REJECTED", "STORE_FAULTS", "Envelope", "Events", "Mongo", "Nodes", "Schedules", "Store", "within"]
