"""What a process keeps from garbage collections."""

import subprocess
import sys

_PROGRAM = """
import gc
import weakref
from scheduler_app.heap import settle_heap
import scheduler_app.worker.process
class Cycle: pass
lost = Cycle(); lost.itself = lost; gone = weakref.ref(lost); del lost
before = len(gc.get_objects())
settle_heap()
print(gone() is None, gc.get_freeze_count() > 0.9 * before, len(gc.get_objects()) < 0.1 * before)
"""


def test_what_a_start_has_made_is_looked_at_by_no_later_collection() -> None:
    ended = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr) == ("True True True\n", "")
