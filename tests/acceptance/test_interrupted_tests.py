"""A run of the tests that is interrupted, terminated or killed leaves nothing running and nothing in /tmp."""

import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
@pytest.mark.parametrize("processes", ["0", "2"], ids=["alone", "distributed"])
def test_nothing_is_left_of_a_run_that_was_ended(
    how: signal.Signals, processes: str, tmp_path: Path, run: Callable[..., Program]
) -> None:
    before = _temporary()
    (tmp_path / "test_waits.py").write_text(_TEST.format(started=str(tmp_path / "started")))
    options = ("-q", "-p", "tests.conftest", "-p", "no:cacheprovider", "-n", processes, "--rootdir", ".")
    program = run(
        sys.executable, "-m", "pytest", *options, "test_waits.py", PYTHONPATH=str(Path(__file__).parents[2])
    )
    started = [tmp_path / "started1", *([tmp_path / "started2"] if processes == "2" else [])]
    wait_until(lambda: all(path.exists() for path in started), f"the tests to run\n{program.output}", 40)
    # To the group, as a terminal does at Ctrl-C; the others to the one process, as make and the kernel do.
    program.signal(how, to_group=how == signal.SIGINT)
    wait_until(lambda: program.processes() == [], "everything to end", 30)
    assert _temporary() == before
