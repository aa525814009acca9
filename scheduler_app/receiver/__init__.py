"""For programs that receive callbacks: checks them, and does the work of each event once.

It needs the standard library alone. `flask`, `asgi` (Starlette, FastAPI) and `django` beside this file are
thin adapters, each imported by itself.

>>> from scheduler_app.receiver import Receiver
>>> from scheduler_app.receiver.flask import receives
>>> receiver = Receiver("whsec_…")
>>> @app.post("/nightly")
... @receives(receiver)
... def nightly(delivery):
...     print(delivery.key, delivery.json())
"""

from scheduler_app.receiver.keys import Keys, LookupKeys, MemoryKeys, RedisKeys, Seen
from scheduler_app.receiver.receiver import Answer, Delivery, Receiver

__all__ = ["Answer", "Delivery", "Keys", "LookupKeys", "MemoryKeys", "Receiver", "RedisKeys", "Seen"]
