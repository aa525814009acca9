"""`make mutants`: puts deliberate faults into the core, one at a time, and tells which no test notices."""

import argparse
import random
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.mutants.acceptance import TESTS_OF_PROCESSES
from tests.mutants.faults import Fault, Key, faults_of
from tests.mutants.places import ROOT, sources
from tests.mutants.reached import Test, kept_tests, measured
from tests.mutants.trial import Copy, Verdict, in_parts, reaching

EQUIVALENTS: Final = Path(__file__).with_name("equivalents.toml")
#: The share of faults that must be noticed, of those that are not equivalent.
WANTED: Final = 0.95
#: What tests of processes may take together.
SECONDS_OF_PROCESSES: Final = 60.0


def main() -> int:
    asked = _arguments()
    texts = {path: (ROOT / path).read_bytes() for path in sources() if path.startswith(tuple(asked.only))}
    faults = [fault for path in texts for fault in faults_of(path, texts[path])]
    drawn, reasons = draw(faults, asked.seed, asked.count), equivalents()
    known = {fault.key(texts[fault.file]) for fault in faults}
    if gone := [key for key in reasons if key.file in texts and key not in known]:
        sys.exit("\n".join(f"{EQUIVALENTS.name} lists what is no fault any more: {key}" for key in gone))
    equivalent = [fault for fault in drawn if fault.key(texts[fault.file]) in reasons]
    tests = kept_tests() if asked.as_measured else measured(asked.processes)
    began = time.monotonic()
    tried = [fault for fault in drawn if fault not in equivalent]
    survivors = [each for each in _try_all(tried, texts, tests, asked.processes) if each.noticed_by is None]
    for fault in equivalent:
        key = fault.key(texts[fault.file])
        print(f"\nEquivalent: {key.file} ({key.function}): {key.was} → {key.becomes}\n  {reasons[key]}")
    for each in survivors:
        print(f"\nSurvived {each.tests} tests:\n{each.fault.diff(texts[each.fault.file])}")
    took = time.monotonic() - began
    noticed = len(tried) - len(survivors)
    print(f"\n{took:.0f} s, {took * asked.processes / max(1, len(tried)):.1f} s for each mutant and process")
    print(
        f"{len(drawn)} mutants, {noticed} noticed, {len(survivors)} survived,"
        f" {len(equivalent)} equivalent (seed {asked.seed})"
    )
    return noticed < WANTED * len(tried)


def draw(faults: Sequence[Fault], seed: int, count: int) -> list[Fault]:
    """Each line that can be changed is drawn as often as any other, at most once, and one fault of it."""
    drawn = random.Random(seed)
    of_line: defaultdict[tuple[str, int], list[Fault]] = defaultdict(list)
    for fault in faults:
        of_line[fault.file, fault.line].append(fault)
    lines = sorted(of_line)
    return [drawn.choice(of_line[line]) for line in drawn.sample(lines, min(count, len(lines)))]


def equivalents() -> dict[Key, str]:
    """The faults that change nothing that anybody could notice, with the reason for each."""
    listed = tomllib.loads(EQUIVALENTS.read_text())["equivalent"]
    return {Key(*(each[name] for name in Key._fields)): each["why"] for each in listed}


def _try_all(
    faults: Sequence[Fault], texts: dict[str, bytes], tests: dict[str, Test], processes: int
) -> list[Verdict]:
    copies: SimpleQueue[Copy] = SimpleQueue()

    def try_out(fault: Fault) -> Verdict:
        copy, began = copies.get(), time.monotonic()
        try:
            parts = in_parts(reaching(fault, texts[fault.file], tests), tests, fault.file)
            if of_processes := TESTS_OF_PROCESSES.get(fault.file):
                parts = [*parts, (list(of_processes), SECONDS_OF_PROCESSES)]
            found = next((by for part in parts if (by := copy.try_out(fault, *part)) is not None), None)
        finally:
            copies.put(copy)
        verdict = Verdict(fault, found, sum(len(names) for names, _ in parts), time.monotonic() - began)
        key = fault.key(texts[fault.file])
        told = f"by {found}" if found else "NOT NOTICED"
        print(
            f"{verdict.seconds:5.1f} s {fault.file}:{fault.line} {key.was} → {key.becomes}: {told}",
            flush=True,
        )
        return verdict

    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for index in range(processes):
            copies.put(Copy(Path(folder), index))
        with ThreadPoolExecutor(processes) as pool:
            try:
                return list(pool.map(try_out, faults))
            finally:  # after Ctrl-C those that have not begun are not tried
                pool.shutdown(wait=False, cancel_futures=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=_seed_of_commit(), help="by default, from the commit")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--only", nargs="+", default=[""], metavar="PATH", help="what the files begin with")
    parser.add_argument(
        "--as-measured", action="store_true", help="take what tests reached when that was measured last"
    )
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args()


def _seed_of_commit() -> int:
    command = ["git", "rev-parse", "HEAD"]
    return int(subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout[:8], 16)


if __name__ == "__main__":
    sys.exit(main())
