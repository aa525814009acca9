"""A thread whose death ends the process: in a process of its own."""

import subprocess
import sys

import pytest

from scheduler_app.worker.essential_thread import EXIT_STATUS

PROGRAM = """
import threading
from scheduler_app.worker.essential_thread import EssentialThread

class Worker(EssentialThread):
    def work(self):
        begun.set()
        {work}

begun = threading.Event()
thread = Worker("recorder")
assert thread.name == "recorder"
thread.start()
assert begun.wait(60)
{then}
"""


@pytest.mark.parametrize(
    ("work", "then", "status"),
    [
        ("raise ValueError", "thread.join()", EXIT_STATUS),
        ("raise SystemExit", "thread.join()", EXIT_STATUS),
        ("return", "thread.join()", 0),
        ("threading.Event().wait()", "", 0),
    ],
    ids=["an-error", "an-exit", "its-end", "the-process-ends-first"],
)
def test_a_thread_that_dies_ends_its_process_and_one_that_works_on_does_not_keep_it(
    work: str, then: str, status: int
) -> None:
    program = PROGRAM.format(work=work, then=then)
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == status
