"""What ends a run of tests or benchmarks leaves nothing running and nothing in the temporary folder."""

import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.acceptance.stack import CELERY, CODE
from tests.processes import Program, wait_until

_TEST = """
import subprocess, sys, time, pytest

@pytest.mark.parametrize("number", [1, 2])
def test_that_waits(redis_server, run, number):
    run(sys.executable, "-c", "import time; time.sleep(300)")
    open({started!r} + str(number), "w").close()
    time.sleep(300)
"""


def _temporary() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).iterdir()}


@pytest.mark.parametrize(
    ("how", "processes"),
    [(signal.SIGINT, "1"), (signal.SIGTERM, "1"), (signal.SIGKILL, "2"), (signal.SIGKILL, "0")],
    ids=["interrupted", "terminated", "killed", "killed, and not distributed"],
)
def test_nothing_is_left_of_a_run_that_was_ended(
    how: signal.Signals, processes: str, tmp_path: Path, run: Callable[..., Program]
) -> None:
    before = _temporary()
    (tmp_path / "test_waits.py").write_text(_TEST.format(started=str(tmp_path / "started")))
    options = ("-q", "-p", "xdist.plugin", "-p", "tests.conftest", "-p", "no:cacheprovider", "--rootdir", ".")
    program = run(
        *(sys.executable, "-m", "pytest", *options, "-n", processes, "test_waits.py"),
        PYTHONPATH=str(CODE),
        # Those that a run needs are named above; importing the others takes most of the time.
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
    )
    started = [tmp_path / "started1", *([tmp_path / "started2"] if processes == "2" else [])]
    wait_until(lambda: all(path.exists() for path in started), f"the tests to run\n{program.output}")
    # To the group, as a terminal does at Ctrl-C; the others to the one process, as make and the kernel do.
    program.signal(how, to_group=how == signal.SIGINT)
    program.wait_for_nothing_left()
    assert _temporary() == before


def test_nothing_is_left_of_a_benchmark_that_was_killed(run: Callable[..., Program]) -> None:
    before = _temporary()
    program = run(sys.executable, "-m", "tests.bench", "burst", "--workers", "1", PYTHONPATH=str(CODE))
    # The receiver is started after the servers and before the product's processes.
    for part in ("tests.bench.sink", CELERY):
        wait_until(partial(_runs, program, part), f"{part} to run")
    program.signal(signal.SIGKILL)
    program.wait_for_nothing_left()
    assert _temporary() == before


def _runs(program: Program, part: str) -> bool:
    for process in program.processes():
        with suppress(psutil.NoSuchProcess):
            if part in process.cmdline():
                return True
    return False
