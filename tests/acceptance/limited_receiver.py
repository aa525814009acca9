"""A receiver that notes when requests arrive and how many are open at once, and fails when it is told to."""

import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

#: How long each answer takes, in seconds.
TOOK = 0.02


class LimitedReceiver:
    """Answers on a free port of loopback."""

    def __init__(self) -> None:
        self.arrivals: list[float] = []
        self.keys: Counter[str] = Counter()
        self.most_open = 0
        self.fails = False
        self._open = 0
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            timeout: ClassVar[float] = 120

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                failed = receiver.begin(self.headers["idempotency-key"])
                time.sleep(TOOK)  # what an answer takes: it is what limits are for
                receiver.end()
                self.send_response(503 if failed else 200)
                if failed:
                    self.send_header("Retry-After", "0")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"

    def begin(self, key: str) -> bool:
        with self._lock:
            self.arrivals.append(time.monotonic())
            self._open += 1
            self.most_open = max(self.most_open, self._open)
            if not self.fails:
                self.keys[key] += 1
            return self.fails

    def end(self) -> None:
        with self._lock:
            self._open -= 1

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def excess(arrivals: list[float], burst: int, rate: float) -> float:
    """By how many requests the fullest window of any length exceeds `burst` + `rate` × its length; at most 0
    where none does. A token bucket that is emptied by each arrival says so in one pass."""
    worst, level, last = -float(burst), 0.0, 0.0
    for at in sorted(arrivals):
        level = max(0.0, level - (at - last) * rate) + 1
        worst, last = max(worst, level - burst), at
    return worst
