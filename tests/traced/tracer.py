"""Notes which source files of the product are entered, by which thread, and in which order."""

import os
import sys
import threading
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[2]
ROOMS = ("scheduler_app", "api", "beat")


@cache
def source(filename: str) -> str | None:
    """The path of a file of the product as it lies in the repository; None for any other file."""
    path = os.path.relpath(os.path.realpath(filename), ROOT)
    return path if path.split(os.sep)[0] in ROOMS else None


class Tracer:
    """A file is entered when one of its functions, or the module itself, begins to run."""

    def __init__(self) -> None:
        self._is_on = False
        self._last: dict[str, str] = {}
        self._files: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._moves: Counter[str] = Counter()

    def install(self) -> "Tracer":
        """From now on this thread is seen, and each one that starts later."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def start(self) -> None:
        for seen in (self._last, self._files, self._moves):
            seen.clear()
        self._is_on = True

    @staticmethod
    def leave_this_thread_out() -> None:
        """From now on this thread is not seen any more."""
        sys.setprofile(None)

    def stop(self) -> dict[str, dict[str, Any]]:
        """Returns what each thread did since `start`, by its name: the files that it entered, in order, and
        how often it went from one of them to another one, by a call or by a return."""
        self._is_on = False
        return {
            thread: {"files": list(files), "moves": self._moves[thread]}
            for thread, files in self._files.items()
        }

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if not self._is_on or event not in ("call", "return"):
            return
        file = source(frame.f_code.co_filename)
        if file is None:
            return
        thread = threading.current_thread().name
        if event == "call":
            self._files[thread].setdefault(file)
        if self._last.get(thread, file) != file:
            self._moves[thread] += 1
        self._last[thread] = file
