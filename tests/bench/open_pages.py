"""Pages that are open in browsers: their live parts ask anew every five seconds, with the ETag they have."""

import threading
import time

import requests

from tests.bench.report import Row, percentiles

LIVE = ("/", "/events", "/processes", "/destinations")
EVERY_SECONDS = 5.0


class OpenPages:
    """While it is entered, so many pages are open; each begins at a moment of its own."""

    def __init__(self, url: str, count: int) -> None:
        self._url = url
        self._ended = threading.Event()
        self._took_ms: list[float] = []
        self._statuses: set[int] = set()
        self._threads = [
            threading.Thread(target=self._stay_open, args=(LIVE[each % len(LIVE)], each / count))
            for each in range(count)
        ]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *details: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def figures(self) -> Row:
        """Raises RuntimeError where a page was not answered as it should be."""
        if not self._statuses or not self._statuses <= {200, 304}:
            raise RuntimeError(f"the pages were answered by {self._statuses}")
        return {"asked": len(self._took_ms), "ms": percentiles(self._took_ms)}

    def _stay_open(self, path: str, phase: float) -> None:
        shown, wait = "", phase * EVERY_SECONDS
        with requests.Session() as session:
            while not self._ended.wait(wait):
                began = time.monotonic()
                answer = session.get(self._url + path, headers={"If-None-Match": shown}, timeout=30)
                took = time.monotonic() - began
                self._took_ms.append(took * 1000)
                self._statuses.add(answer.status_code)
                shown = answer.headers.get("ETag", shown)
                wait = max(0.0, EVERY_SECONDS - took)
