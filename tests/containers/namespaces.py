"""Enters the namespaces of the lane, in three stages of one program, so that nothing survives its end.

outside      the process that a person starts; it removes what the kernel keeps of ended containers
prepared     the first process of a PID namespace, in the machine's network: installs Debian into folders
inside       in a network of its own: runs the engine and the steps
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.containers import engine
from tests.scratch import end_with_parent

_STAGE = "CONTAINERS_STAGE"


def run_inside(root: Path, arguments: Sequence[str], work: Callable[[], int]) -> int:
    """Runs `work` in the innermost stage; the exit status."""
    again = [sys.executable, "-m", "tests.containers", *arguments]
    match os.environ.get(_STAGE):
        case None:
            return _outside(again)
        case "prepared":
            return _prepared(root, again)
        case _:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
            return work()


def _outside(again: Sequence[str]) -> int:
    namespaces = ["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"]
    stage = subprocess.Popen(
        ["unshare", *namespaces, *again], env={**os.environ, _STAGE: "prepared"}, preexec_fn=end_with_parent
    )
    # A second Ctrl-C must not interrupt the cleaning up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: stage.kill())
    try:
        return stage.wait()
    finally:
        engine.remove_cgroups()


def _prepared(root: Path, again: Sequence[str]) -> int:
    engine.prepare(root)
    engine.own_cgroup_mount()
    stage = subprocess.Popen(["unshare", "--net", *again], env={**os.environ, _STAGE: "inside"})
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # As the first process of the namespace it is the parent of whatever is left behind.
    while True:
        ended, status = os.wait()
        if ended == stage.pid:
            return os.waitstatus_to_exitcode(status)
