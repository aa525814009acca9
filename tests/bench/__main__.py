"""`python -m tests.bench NAME`: each prints a table and, as its last line, one JSON object.

Without a NAME: the suite, with the budgets beside what was measured.
"""

import argparse
import importlib
import signal
import sys
from dataclasses import replace

from tests import scratch
from tests.bench.host import Stolen, loop_seconds
from tests.builders import use_ordinary_timeouts

NAMES = (
    "suite",
    "pairs",
    "burst",
    "floor",
    "singles",
    "slow",
    "slow_clients",
    "spread",
    "neighbours",
    "peers",
    "sustained",
    "tick",
    "expand",
    "create",
    "messages",
    "trigger",
    "history",
    "idle",
    "pages",
    "browser",
    "recurrence",
    "computing",
    "isolation",
)


def main(argv: list[str]) -> int:
    name, *options = argv or ["suite"]
    if name not in NAMES:
        print(
            f"usage: python -m tests.bench {{{','.join(NAMES)}}} [options]; each knows --help",
            file=sys.stderr,
        )
        return 2
    # Ended by others, it ends what it has started all the same.
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(128 + signum))
    module = importlib.import_module(f"tests.bench.{name}")
    parser = argparse.ArgumentParser(prog=f"python -m tests.bench {name}", description=module.__doc__)
    module.arguments(parser)
    settings, stolen = parser.parse_args(options), Stolen()
    report = module.run(settings)
    host = {"stolen_percent": stolen.percent(), "loop_s": loop_seconds()}
    replace(report, summary=report.summary | host).print(name)
    return 0 if report.good else 1


if __name__ == "__main__":
    # Killed, it ends nothing itself: a watcher does.
    scratch.enter(in_memory=False)
    use_ordinary_timeouts()
    sys.exit(main(sys.argv[1:]))
