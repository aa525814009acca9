"""The threads that compute answers. Probes have their own, so that they never wait for requests."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

_LIVENESS = frozenset(("/health", "/healthz"))
_READINESS = frozenset(("/readyz",))


class RequestThreads:
    """`count` threads for requests; one for liveness probes and two for readiness, which asks MongoDB."""

    def __init__(self, count: int) -> None:
        self._requests = ThreadPoolExecutor(count, "request")
        self._liveness = ThreadPoolExecutor(1, "liveness")
        self._readiness = ThreadPoolExecutor(2, "readiness")

    def submit(self, work: Callable[[], None], path: str = "") -> None:
        """Runs `work` in a thread for requests of this path."""
        pool = self._requests
        if path in _LIVENESS:
            pool = self._liveness
        elif path in _READINESS:
            pool = self._readiness
        pool.submit(work)

    def shutdown(self) -> None:
        """Starts nothing more, and does not wait for what runs."""
        for pool in (self._requests, self._liveness, self._readiness):
            pool.shutdown(wait=False, cancel_futures=True)
