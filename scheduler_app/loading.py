"""What a process does while it loads its modules."""

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
