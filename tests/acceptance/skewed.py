"""A process whose clock is off: `python -m tests.acceptance.skewed SECONDS MODULE ARGUMENTS…`.

It runs the module as `python -m` does, with SECONDS added to what the one place reads that reads the time.
"""

import runpy
import sys
from datetime import datetime, timedelta, tzinfo
from typing import Self

from scheduler_app import clock

OFF = timedelta(seconds=float(sys.argv[1]))


class Skewed(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return super().now(tz) + OFF


if __name__ == "__main__":
    clock.datetime = Skewed  # type: ignore[attr-defined]
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
