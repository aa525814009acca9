"""Clients of the API that ask at a steady pace, whether or not they are answered."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import requests

from tests.bench.report import Row, percentiles

CLIENTS = 4
#: Of each client; together 20 a second.
CREATE_SECONDS = 0.2
HEALTH_SECONDS = 0.5
#: A probe gives up after it, and so do these.
HEALTH_TIMEOUT_SECONDS = 1
CREATE_TIMEOUT_SECONDS = 5


@dataclass(frozen=True)
class _Asked:
    """A request; Unix seconds."""

    at: float
    seconds: float
    answered: bool


class PacedClients:
    """While it is entered, some create schedules of the far future, and one asks for the API's health."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._ended = threading.Event()
        self._creates: list[_Asked] = []
        self._health: list[_Asked] = []
        self._threads = [threading.Thread(target=self._ask_for_health)]
        self._threads += [threading.Thread(target=self._ask_to_create) for _ in range(CLIENTS)]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *details: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def figures(self, begin: float) -> Row:
        """Of the requests made before and after `begin`; a request without an answer counts as long as it
        was waited for."""
        figures = {
            f"{name}_{phase}": _figures([asked for asked in all_asked if (asked.at >= begin) == late])
            for name, all_asked in (("creates", self._creates), ("health", self._health))
            for phase, late in (("undisturbed", False), ("disturbed", True))
        }
        before, after = (
            figures[f"creates_{phase}"]["answered_per_s"] for phase in ("undisturbed", "disturbed")
        )
        return {**figures, "creates_ratio": round(after / max(before, 0.1), 2)}

    def _ask_to_create(self) -> None:
        body = {"name": "paced", "callback_url": "http://127.0.0.1:9/", "run_at": "2090-01-01T00:00:00Z"}
        self._repeat(
            lambda session: session.post(
                f"{self._url}/api/schedules", json=body, timeout=CREATE_TIMEOUT_SECONDS
            ),
            self._creates,
            CREATE_SECONDS,
        )

    def _ask_for_health(self) -> None:
        self._repeat(
            # A connection of its own each time, as a probe has it.
            lambda session: requests.get(f"{self._url}/healthz", timeout=HEALTH_TIMEOUT_SECONDS),
            self._health,
            HEALTH_SECONDS,
        )

    def _repeat(
        self, ask: Callable[[requests.Session], requests.Response], asked: list[_Asked], pause: float
    ) -> None:
        with requests.Session() as session:
            while not self._ended.is_set():
                at, began = time.time(), time.monotonic()
                try:
                    answered = ask(session).ok
                except requests.RequestException:
                    answered = False
                seconds = time.monotonic() - began
                asked.append(_Asked(at, seconds, answered))
                self._ended.wait(max(0.0, pause - seconds))


def _figures(asked: Sequence[_Asked]) -> Row:
    if not asked:
        return {"asked": 0, "unanswered": 0, "answered_per_s": 0.0}
    seconds = max(each.at + each.seconds for each in asked) - min(each.at for each in asked)
    return {
        "asked": len(asked),
        "unanswered": sum(not each.answered for each in asked),
        "answered_per_s": round(sum(each.answered for each in asked) / max(seconds, 0.001), 1),
        "ms": percentiles([each.seconds * 1000 for each in asked]),
    }
