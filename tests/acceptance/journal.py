"""A receiver that writes down when each request came, and answers by a script for each path."""

import socket
import threading
import time
from collections import defaultdict
from dataclasses import dataclass

from tests.integration.actions.receiver import Behaviour, Receiver, Seen, says


@dataclass(frozen=True)
class Call:
    """A request with the time of its arrival, Unix seconds."""

    at: float
    seen: Seen

    @property
    def key(self) -> str:
        return self.seen.headers["idempotency-key"]

    @property
    def run_time(self) -> str:
        return self.seen.headers["x-scheduler-run-time"]


class Journal:
    """`calls[path]` are the requests in the order of their arrival; 200 where nothing else is scripted."""

    def __init__(self) -> None:
        self.calls: dict[str, list[Call]] = defaultdict(list)
        self._scripts: dict[str, list[Behaviour]] = {}
        self._lock = threading.Lock()
        self._receiver = Receiver(self._behave)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._receiver.port}{path}"

    def script(self, path: str, *behaviours: Behaviour) -> str:
        """Answers the requests to `path` one after the other; the last answer is for all that follow."""
        self._scripts[path] = list(behaviours)
        return self.url(path)

    @property
    def connections(self) -> int:
        return self._receiver.connections

    def close(self) -> None:
        self._receiver.close()

    def _behave(self, seen: Seen, connection: socket.socket) -> bool:
        with self._lock:
            self.calls[seen.path].append(Call(time.time(), seen))
            script = self._scripts.get(seen.path, [says()])
            behave = script.pop(0) if len(script) > 1 else script[0]
        return behave(seen, connection)
