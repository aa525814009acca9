"""Tries a fault: in a copy of the tree, by the tests that reach its lines, until one of them fails.

This file is a pytest plugin too, for the runs that it starts (`-p tests.mutants.trial`).
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from scheduler_app.embedded import server
from tests import scratch
from tests.mutants.faults import Fault
from tests.mutants.places import copy_tree
from tests.mutants.reached import Test

#: By the seconds that they took, tests are run first until this is spent, chosen for speed and closeness …
FIRST_SECONDS: Final = 12.0
#: … and then others, up to this. Almost all faults are noticed by the first ones.
ALL_SECONDS: Final = 100.0
#: A test that takes longer hangs, and has noticed the fault if it does not hang without it.
_PATIENCE: Final = 12.0
_PATIENCE_WITH_PROCESSES: Final = 150.0
#: So many times as long may tests take that took too long without the fault, too: this machine is slow.
MORE_PATIENCE: Final = 5.0
#: What starting pytest and the servers may take.
_START_SECONDS: Final = 60.0
_INDEX: Final = "MUTANTS_COPY"
_PASSED, _NONE_FOUND = 0, 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a fault."""

    fault: Fault
    noticed_by: str | None
    tests: int
    """How many were selected."""
    seconds: float = 0.0


class Failed(NamedTuple):
    """What ended a run of tests."""

    test: str
    """Or what happened instead of a test that failed."""
    is_doubtful: bool = False
    """Whether a slow machine may be the reason: it took too long, or its preparation failed."""


class Copy:
    """A copy of the tree, in which one fault at a time is tried."""

    def __init__(self, folder: Path, index: int) -> None:
        self._root = folder / str(index)
        self._index = index
        copy_tree(self._root)

    def try_out(self, fault: Fault, tests: Sequence[str], seconds: float) -> str | None:
        """Returns what noticed the fault: the test that failed, or a word; None when all passed."""
        path = self._root / fault.file
        source, left, patience = path.read_bytes(), list(tests), 1.0
        while left:
            try:
                self._write(path, fault.applied(source))
                failed = self.run(left, seconds, patience)
            finally:
                self._write(path, source)
            if failed is None or not failed.is_doubtful:
                break
            doubtful = [failed.test] if failed.test in left else left
            if self.run(doubtful, seconds, patience) is None:
                break  # without the fault it passes
            if patience == 1.0:
                patience = MORE_PATIENCE
            else:
                left = [test for test in left if test not in doubtful]
        else:
            return None
        return failed and failed.test

    def run(self, tests: Sequence[str], seconds: float, patience: float = 1.0) -> Failed | None:
        """Returns what failed; `seconds` is what the tests took when they were measured, and all limits of
        time are multiplied by `patience`."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "--no-header",
            "-rfE",
            "--tb=no",
            "-p",
            __name__,
        ]
        each = _PATIENCE_WITH_PROCESSES if tests[0].startswith("tests/acceptance") else _PATIENCE
        command += ["-p", "no:cacheprovider", "--timeout", str(patience * each), *tests]
        environment = os.environ | {"PYTHONPATH": str(self._root), _INDEX: str(self._index)}
        environment["BUILD_NUMBER"] = "1"  # by which pytest tells a CI, where it shortens no line
        # A session of its own: what hangs is ended with all that it started.
        process = subprocess.Popen(
            command,
            cwd=self._root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=patience * (_START_SECONDS + each + 4 * seconds))
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return Failed("a limit of time", is_doubtful=True)
        text = output.decode(errors="replace")
        if process.returncode == _PASSED:
            return None
        if process.returncode == _NONE_FOUND:
            raise RuntimeError(f"no test was run:\n{text}")
        failed = [line for line in text.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        if not failed:
            return Failed(f"exit status {process.returncode}")
        outcome, _, rest = failed[0].partition(" ")
        test, _, why = rest.partition(" - ")
        return Failed(test, is_doubtful=outcome == "ERROR" or "Timeout (>" in why)

    def _write(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        # What was compiled is recognised by the size and the second of the last change: both may be the same.
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()


def reaching(fault: Fault, source: bytes, tests: dict[str, Test]) -> list[list[str]]:
    """The tests that may notice the fault, the likelier ones first: where it sets something on `self`, those
    that reach another line that uses that, because each test that makes the object sets it; then those that
    reach a line of the fault. Where there is none, it may run when its file is imported: those that reach
    another line of the file, or, where all of it runs then, of a file beside it."""
    last = fault.line + source.count(b"\n", fault.start, fault.end)
    lines = set(range(fault.line, last + 1))
    of_file = {name: test.lines[fault.file] for name, test in tests.items() if fault.file in test.lines}
    found: list[list[str]] = []
    for wanted in (_uses(fault, source) - lines, lines):
        known = set(chain.from_iterable(found))
        names = [name for name, reached in of_file.items() if not wanted.isdisjoint(reached)]
        found.append([name for name in names if name not in known])
    if any(found):
        return [names for names in found if names]
    folder = fault.file.rpartition("/")[0]
    beside = (
        name for name, test in tests.items() if folder in {path.rpartition("/")[0] for path in test.lines}
    )
    return [list(of_file) or list(beside)]


def _uses(fault: Fault, source: bytes) -> set[int]:
    """The lines that name the attribute of `self` that the fault's statement sets."""
    begin = source.rfind(b"\n", 0, fault.start) + 1
    assigned = re.match(rb"\s*(self\.\w+)(?:: [^=]+)? = ", source[begin:])
    if assigned is None:
        return set()
    name = re.compile(re.escape(assigned[1]) + rb"\b")
    return {number for number, text in enumerate(source.splitlines(), 1) if name.search(text)}


def in_parts(
    groups: Iterable[Sequence[str]], tests: dict[str, Test], file: str
) -> list[tuple[list[str], float]]:
    """Those that are run first, and those that follow, each with the seconds that they take. A group is begun
    when the ones before it have left time.

    In turns come the quickest, and those that reach least beside this file: they are about it.
    """
    parts: list[tuple[list[str], float]] = []
    left = ALL_SECONDS
    for names in groups:
        if parts and left <= 0:
            break
        quick = sorted(names, key=lambda name: tests[name].seconds)
        close = sorted(quick, key=lambda name: -len(tests[name].lines.get(file, ())) / tests[name].breadth)
        order = list(dict.fromkeys(name for pair in zip(quick, close, strict=True) for name in pair))
        first, spent = _within(order, tests, min(left, FIRST_SECONDS))
        rest, more = _within([name for name in order if name not in set(first)], tests, left - spent)
        parts += [(sorted(first, key=lambda name: tests[name].seconds), spent), (rest, more)]
        left -= spent + more
    return [part for part in parts if part[0]]


def _within(names: Sequence[str], tests: dict[str, Test], seconds: float) -> tuple[list[str], float]:
    chosen: list[str] = []
    spent = 0.0
    for name in names:
        if spent + tests[name].seconds <= seconds or not chosen:
            chosen.append(name)
            spent += tests[name].seconds
    return chosen, spent


# -- the plugin --------------------------------------------------------------------------------------------


def pytest_configure() -> None:
    """A port that one copy has found to be free must not be taken by another before it is listened on. And a
    run ends with the one that started it."""
    scratch.end_with_parent()
    each = len(server.RANGE) // 4
    first = server.RANGE.start + int(os.environ[_INDEX]) * each
    server.RANGE = range(first, first + each)


def pytest_itemcollected(item: pytest.Item) -> None:
    """A test's own, longer limit is for machines under load; here it is the time of a fault that hangs."""
    item.own_markers[:] = [mark for mark in item.own_markers if mark.name != "timeout"]
