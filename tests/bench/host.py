"""What the host has left of this machine: where others share it, a figure says as much about them."""

import statistics
import time

import psutil

_LOOP = compile("for number in range(3_000_000): total += number", "loop", "exec")


class Stolen:
    """Counts, from its making on, the CPU time that was wanted here and given to others (`steal` in
    proc(5))."""

    def __init__(self) -> None:
        self._total, self._stolen = _read()

    def percent(self) -> float:
        """Of the time of all cores; 0 on a machine of one's own."""
        total, stolen = _read()
        return round(100 * (stolen - self._stolen) / max(total - self._total, 0.01), 1)


def loop_seconds() -> float:
    """What a fixed loop takes, the median of three: how fast a core is, which neighbours change too, by its
    clock and its caches, without stealing any of its time."""
    return round(statistics.median(_one_loop() for _ in range(3)), 3)


def _one_loop() -> float:
    began = time.perf_counter()
    exec(_LOOP, {"total": 0})
    return time.perf_counter() - began


def _read() -> tuple[float, float]:
    times = psutil.cpu_times()
    # `guest` is in `user` already.
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return total, getattr(times, "steal", 0.0)
