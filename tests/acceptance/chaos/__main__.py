"""`python -m tests.acceptance.chaos`: breaks everything once, and proves the promise (`--help` for more)."""

import argparse
import json
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from tests import scratch
from tests.acceptance.chaos import suite
from tests.acceptance.chaos.cluster import BROKERS, Cluster
from tests.acceptance.chaos.faults import FAULTS, faults_over
from tests.acceptance.chaos.mixed import mixed
from tests.acceptance.chaos.report import show_breaks, table
from tests.acceptance.chaos.without import MECHANISMS


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.acceptance.chaos",
        description="Breaks the product's processes and servers under load, and audits what came of it. "
        "Exit status 1 when the promise was broken.",
        epilog="Faults: " + "; ".join(f"{fault.name}: {fault.about}" for fault in FAULTS.values()),
    )
    parser.add_argument("faults", nargs="*", metavar="FAULT", help="by default each of them once")
    parser.add_argument("--seed", type=int, default=1, help="repeats a run's load (default 1)")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, counted from --seed")
    parser.add_argument("--mixed", type=float, metavar="MINUTES", help="all faults in random order instead")
    parser.add_argument(
        "--without", choices=sorted(MECHANISMS), help="a mechanism of the product switched off"
    )
    parser.add_argument(
        "--broker", choices=BROKERS, default="redis", help="what it runs over (default redis)"
    )
    parser.add_argument("--logs", type=Path, metavar="FOLDER", help="keeps the processes' logs there")
    options = parser.parse_args(argv)
    faults = faults_over(options.broker)
    unknown = [name for name in options.faults if name not in faults]
    if unknown:
        parser.error(
            f"no such fault over {options.broker}: {', '.join(unknown)}; there are {', '.join(faults)}"
        )
    console = Console(width=180)
    launcher = ("tests.acceptance.chaos.without", options.without) if options.without else ()
    rows: list[suite.Row] = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder, ExitStack() as stack:
        cluster = Cluster(Path(folder), launcher, options.broker)
        cluster.start_servers(stack)
        cluster.start_processes()
        stack.callback(_keep_logs, Path(folder), options.logs)
        # Whoever is impatient must not interrupt the cleaning up: processes and mounts would stay.
        stack.callback(signal.signal, signal.SIGINT, signal.SIG_IGN)
        chosen = (
            [mixed(options.mixed, options.broker)]
            if options.mixed
            else [faults[name] for name in options.faults or faults]
        )
        for fault in chosen:
            for seed in range(options.seed, options.seed + options.seeds):
                rows.append(suite.run(cluster, fault, seed))
                console.print(table(rows[-1:]))
                show_breaks(console, rows[-1])
    console.print(table(rows))
    print(
        json.dumps(
            {
                "chaos": "broken" if any(row.findings.broken for row in rows) else "kept",
                "broker": options.broker,
                **suite.summary(rows),
            }
        )
    )
    return 1 if any(row.findings.broken for row in rows) else 0


def _keep_logs(folder: Path, where: Path | None) -> None:
    if where:
        where.mkdir(parents=True, exist_ok=True)
        for log in folder.rglob("*.log"):
            (where / "-".join(log.relative_to(folder).parts)).write_bytes(log.read_bytes())


if __name__ == "__main__":
    # Killed, it ends nothing itself: a watcher does.
    scratch.enter(in_memory=False)
    sys.exit(main(sys.argv[1:]))
