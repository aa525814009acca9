"""`make containers`: what `deploy/`, `docker-compose.yml` and the manual say, done by a real Docker Engine.

Needs root on a Debian machine, and nothing else: the engine is installed into a folder. `ARGS="readme kills"`
runs single steps; each prepares what it needs. What was seen is written to docs/containers.md when all ran,
or with `--write`.
"""

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.containers import engine as engines
from tests.containers import page
from tests.containers.deployment import ROOT
from tests.containers.lane import Lane
from tests.containers.namespaces import run_inside
from tests.containers.steps import broken, kept, monitored, others, started, units

#: Of an error; a list of hundreds of answers helps nobody.
SHOWN_CHARACTERS = 3000
#: In the order in which they run.
STEPS: dict[str, Callable[[Lane], list[str]]] = {
    step.__name__.replace("_", "-"): step
    for module in (started, broken, kept, monitored, units, others)
    for step in module.STEPS
}


def main(argv: list[str]) -> int:
    abouts = "; ".join(f"{name}: {(step.__doc__ or '').splitlines()[0]}" for name, step in STEPS.items())
    parser = argparse.ArgumentParser(prog="make containers", description=__doc__, epilog=f"Steps: {abouts}")
    parser.add_argument("steps", nargs="*", metavar="STEP", help="by default all of them")
    parser.add_argument(
        "--root", type=Path, default=ROOT / "build" / "containers", help="the folder of the engine"
    )
    parser.add_argument(
        "--write", action="store_true", help="writes docs/containers.md after single steps, too"
    )
    options = parser.parse_args(argv)
    unknown = [name for name in options.steps if name not in STEPS]
    if unknown:
        parser.error(f"no such step: {', '.join(unknown)}; there are {', '.join(STEPS)}")
    if os.geteuid() != 0:
        parser.error("this needs root: it mounts, and makes namespaces")
    return run_inside(options.root.resolve(), argv, lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    root = options.root.resolve()
    lane = Lane(engines.Engine(root))
    chosen = options.steps or list(STEPS)
    failed = []
    results = page.Results(root / "results.json")
    try:
        lane.engine.start()
        for name in chosen:
            print(f"── {name}: {(STEPS[name].__doc__ or '').splitlines()[0]}", flush=True)
            began = time.monotonic()
            try:
                seen = STEPS[name](lane)
            except Exception as error:
                failed.append(name)
                results.forget(name)
                where = "" if isinstance(error, engines.StepFailed) else traceback.format_exc(limit=-4)
                said = f"{where}{error}"
                if len(said) > SHOWN_CHARACTERS:
                    said = f"{said[: SHOWN_CHARACTERS // 2]}\n…\n{said[-SHOWN_CHARACTERS // 2 :]}"
                print(f"   FAILED after {time.monotonic() - began:.0f} s: {said}", flush=True)
                print(lane.state(), flush=True)
                lane.begin_anew()
                continue
            seconds = time.monotonic() - began
            results.note(name, (STEPS[name].__doc__ or "").splitlines()[0], seconds, seen)
            print("".join(f"   {line}\n" for line in seen) + f"   took {seconds:.0f} s", flush=True)
    finally:
        lane.deployment.down()
        lane.engine.stop()
    if not failed and (options.write or not options.steps):
        page.write(results, list(STEPS))
    print(
        f"{len(chosen) - len(failed)} of {len(chosen)} steps passed"
        + "".join(f"; failed: {x}" for x in failed)
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
