"""Dispatch: due events become messages, in turn among those who own them."""

from scheduler_app.usecases.dispatch.batches import Batch
from scheduler_app.usecases.dispatch.dispatch import Dispatch, DispatchResult, Publisher
from scheduler_app.usecases.dispatch.room import MESSAGES_IN_QUEUE

__all__ = ["MESSAGES_IN_QUEUE", "Batch", "Dispatch", "DispatchResult", "Publisher"]
