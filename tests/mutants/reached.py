"""Which tests reach which lines: measured once by `coverage`, and kept for the tests that have not changed.

Where code has changed since, the lines of a test move with those of the file: what stands in the place of
lines that a test reached counts as reached. That decides which tests are tried, and not what they notice.

This file is a pytest plugin too, which measures while the tests run (`-p tests.mutants.reached`).
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from coverage import Coverage

from tests import scratch
from tests.mutants.moved import Line, lines_now
from tests.mutants.places import ROOT, copy_tree, sources

#: Below the folder of what is built, which Git ignores.
KEPT_IN: Final = ROOT / "build" / "mutants" / "reached.json"
#: Tests of processes reach nothing in the process that measures.
TESTED_BY: Final = ("tests/unit", "tests/conformance", "tests/integration")
_FOLDER: Final = "MUTANTS_REACHED"


@dataclass(slots=True)
class Test:
    """A test that passes, and what it reaches."""

    seconds: float
    lines: dict[str, list[int]] = field(default_factory=dict)
    """The lines of each source file."""

    @property
    def breadth(self) -> int:
        """How many lines it reaches: few in a test of one thing."""
        return sum(map(len, self.lines.values()))


# -- the map -----------------------------------------------------------------------------------------------


def measured(processes: int, only: Sequence[str] = TESTED_BY) -> dict[str, Test]:
    """Returns all tests by their ids. Those whose file has changed are run; the others are as they were."""
    texts = {path: (ROOT / path).read_text() for path in sources()}
    now = {path: _digest(path) for path in _test_files()}
    kept, old = _kept()
    moves = lines_now(old, texts)
    files: dict[str, Any] = {}
    for path, of in kept.items():
        if of["digest"] == now.get(path):
            tests = {name: _moved(test, moves) for name, test in of["tests"].items()}
            files[path] = {"digest": of["digest"], "tests": tests}
    missing = [path for path in now if path not in files and path.startswith(tuple(only))]
    if missing:
        print(f"Measuring what {len(missing)} files of tests reach …", file=sys.stderr, flush=True)
        for path, tests in _run(missing, processes).items():
            files[path] = {"digest": now[path], "tests": tests}
    KEPT_IN.parent.mkdir(parents=True, exist_ok=True)
    KEPT_IN.write_text(json.dumps({"files": files, "sources": texts}))
    return _tests(files)


def kept_tests() -> dict[str, Test]:
    """Returns the tests as they were measured last, whatever has changed since."""
    return _tests(_kept()[0])


def _kept() -> tuple[dict[str, Any], dict[str, str]]:
    """What was measured, by the files of tests, and the text of the sources that its lines are those of."""
    found = json.loads(KEPT_IN.read_text()) if KEPT_IN.exists() else {}
    return found.get("files", {}), found.get("sources", {})


def _moved(test: dict[str, Any], moves: dict[Line, list[Line]]) -> dict[str, Any]:
    found: defaultdict[str, set[int]] = defaultdict(set)
    for path, numbers in test["lines"].items():
        for number in numbers:
            for there, each in moves.get((path, number), ()):
                found[there].add(each)
    return {"seconds": test["seconds"], "lines": {path: sorted(lines) for path, lines in found.items()}}


def _tests(files: dict[str, Any]) -> dict[str, Test]:
    return {name: Test(**test) for of in files.values() for name, test in of["tests"].items()}


def _test_files() -> list[str]:
    found = (path for folder in TESTED_BY for path in (ROOT / folder).rglob("test_*.py"))
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def _digest(path: str) -> str:
    return hashlib.sha256((ROOT / path).read_bytes()).hexdigest()[:16]


def _run(files: Sequence[str], processes: int) -> dict[str, dict[str, Any]]:
    """Runs the tests, in a copy of the tree as faults are tried in one, and returns those that passed, by
    their files. A file whose process died has none, and is measured again next time."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", __name__, "-m", "not chaos and not long"]
    command += ["-n", str(processes), "--dist", "loadfile", "--timeout", "600", *files]
    with tempfile.TemporaryDirectory(prefix="reached-") as folder:
        tree = Path(folder) / "tree"
        copy_tree(tree)
        environment = os.environ | {_FOLDER: folder, "PYTHONPATH": str(tree)}
        subprocess.run(command, cwd=tree, env=environment, check=False, stdout=sys.stderr)
        found: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for part in Path(folder).glob("*.json"):
            for name, test in json.loads(part.read_text()).items():
                found[name.partition("::")[0]][name] = test
    return found


# -- the plugin --------------------------------------------------------------------------------------------


class _Measuring:
    """Gives each line that runs to the test that runs."""

    def __init__(self, part: Path) -> None:
        self._part = part
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._failed: set[str] = set()
        self._coverage = Coverage(
            data_file=None,
            include=[str(ROOT / path) for path in sources()],
            config_file=False,
            messages=False,
        )
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        result = yield
        self._coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        data = self._coverage.get_data()
        tests = {name: Test(took) for name, took in self._seconds.items() if name not in self._failed}
        for path in sources():
            for line, names in sorted(data.contexts_by_lineno(str(ROOT / path)).items()):
                for name in names:
                    if name in tests:
                        tests[name].lines.setdefault(path, []).append(line)
        found = {name: {"seconds": test.seconds, "lines": test.lines} for name, test in tests.items()}
        self._part.write_text(json.dumps(found))


def pytest_configure(config: pytest.Config) -> None:
    """In each process that runs tests; the one that only shares them out has none. All of them end with the
    process that started them."""
    scratch.end_with_parent()
    worker = getattr(config, "workerinput", {}).get("workerid")
    if worker is not None or not config.getoption("numprocesses", None):
        part = Path(os.environ[_FOLDER]) / f"{worker or 'all'}.json"
        config.pluginmanager.register(_Measuring(part))
