"""Garbage collections while a process starts, and what they leave alone afterwards."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Loads modules without a garbage collector, which would look through all of them again and again for a
    sixth of the time until a process is ready. Modules stay: it never looks at them afterwards, either."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()


def settle_heap() -> None:
    """Takes what the start has made besides modules (routes, schemas, connections) out of all later garbage
    collections. To be called once, at its end.

    A full collection looks at every object that is left, and all threads wait meanwhile: under load workers
    stood still for 0.2 to 0.5 s, every few seconds, and each callback that fell due then was as late.
    """
    gc.collect()
    gc.freeze()
