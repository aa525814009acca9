"""Where the tests' databases live: in memory if the machine lets them.

A test makes dozens of collections and indexes, and each is a file that mongod writes out before it answers:
on a disk that takes three times as long, and it is most of what a short test waits for.
"""

import shutil
from pathlib import Path

_IN_MEMORY = Path("/dev/shm")
_ENOUGH_BYTES = 4 * 2**30


def memory() -> str | None:
    """A folder that is kept in memory, as `dir` of `tempfile`; None, the usual one, where there is none."""
    if not _IN_MEMORY.is_dir() or shutil.disk_usage(_IN_MEMORY).free < _ENOUGH_BYTES:
        return None
    return str(_IN_MEMORY)
