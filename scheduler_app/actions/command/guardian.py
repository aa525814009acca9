"""The process between a worker and one command: it starts the command, and leaves nothing of it behind.

A worker runs this file by itself, with the standard library alone. It adopts whatever the command's
processes leave behind (PR_SET_CHILD_SUBREAPER), so that it can find and kill them all: at the time limit,
when the command ends, and when the worker ends, however that happens (PR_SET_PDEATHSIG). A limit or the
worker's end is SIGTERM to it: it passes that on, waits for the grace period, and kills.

It reads a JSON object from standard input (see `running.specification`), and writes one to the descriptor
that is named there: `{"status": the command's wait status}`, or `{"error": why it could not be started,
"errno": the system's number for it, or 0}`.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
#: Between two looks for processes that are left.
PAUSE_SECONDS = 0.02
#: Between two tries to let a command's session give way.
AGAIN_SECONDS = 0.2
#: After how long processes are left that cannot be killed (they hang in the kernel).
LAST_SECONDS = 5.0
_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    with os.fdopen(0, "rb", closefd=False) as given:
        wanted = json.load(given)
    # The worker may have died before the call above: then the signal would never come.
    if os.getppid() != wanted["worker"]:
        return
    report = wanted["report"]
    os.set_inheritable(report, False)
    failure, told = os.pipe()
    command = os.fork()
    if command == 0:
        _become(wanted, told)
    os.close(told)
    why = os.read(failure, 4096)
    if why:
        os.waitpid(command, 0)
        number, _, text = why.decode("utf-8", "replace").partition(" ")
        answer: dict[str, object] = {"error": text, "errno": int(number)}
    else:
        answer = {"status": _watch(command, wanted["grace"], wanted["niceness"])}
    _kill_all()
    os.write(report, json.dumps(answer).encode())


def _watch(command: int, grace: float, niceness: int) -> int:
    """Waits for the end of the command; returns its wait status."""
    kill_at = None
    gives_way = niceness == 0
    while True:
        gives_way = gives_way or _group_gives_way(command, niceness)
        if kill_at is None and gives_way:
            found = signal.sigwait(_SIGNALS)
        else:
            pause = AGAIN_SECONDS if kill_at is None else max(0.0, kill_at - time.monotonic())
            waited = signal.sigtimedwait(_SIGNALS, pause)
            found = signal.SIGCHLD if waited is None else waited.si_signo
        if found != signal.SIGCHLD and kill_at is None:
            _signal_all(command, signal.SIGTERM)
            kill_at = time.monotonic() + grace
        if kill_at is not None and time.monotonic() >= kill_at:
            _signal_all(command, signal.SIGKILL)
        status = _reaped(command)
        if status is not None:
            return status


def _group_gives_way(command: int, niceness: int) -> bool:
    """Gives the group of the command's session the niceness, where the kernel groups processes by session
    ("The autogroup feature" of sched(7)): what a process is given counts within its group only. False when
    the kernel asks to try again: processes without CAP_SYS_ADMIN may do so ten times a second, on the
    whole host together."""
    try:
        with open(f"/proc/{command}/autogroup", "w") as file:
            file.write(str(niceness))
    except BlockingIOError:
        return False
    except OSError:  # there are no such groups, a sandbox forbids it, or the command has ended
        return True
    return True


def _reaped(command: int) -> int | None:
    """Collects what has ended; returns the command's wait status when it is among it."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == command:
            found = status


def _signal_all(command: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(command, number)
    for pid in _descendants():
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _kill_all() -> None:
    """Kills what the command has left, also what has left its process group, until there is nothing."""
    until = time.monotonic() + LAST_SECONDS
    while time.monotonic() < until:
        for pid in _descendants():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(PAUSE_SECONDS)


def _descendants() -> list[int]:
    """The processes below this one, by /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    stat = file.read()
            except OSError:
                continue
            parent = int(stat[stat.rindex(b")") + 2 :].split()[1])
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    below = [os.getpid()]
    while below:
        for child in children.get(below.pop(), ()):
            found.append(child)
            below.append(child)
    return found


def _become(wanted: dict[str, Any], told: int) -> None:
    """Becomes the command. It never returns."""
    try:
        os.setsid()
        os.set_inheritable(told, False)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for name, limit in wanted["limits"].items():
            kind = getattr(resource, name)
            most = resource.getrlimit(kind)[1]
            limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
            resource.setrlimit(kind, (limit, limit))
        # The command alone: this guardian has to end it in time, however busy the host is.
        with suppress(PermissionError):  # a sandbox may forbid it; the command runs all the same
            os.nice(wanted["niceness"])
        if wanted["uid"] is not None:
            os.initgroups(wanted["user"], wanted["gid"])
            os.setgid(wanted["gid"])
            os.setuid(wanted["uid"])
        os.umask(0o077)
        # After the change of the user, which takes it back.
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.chdir(wanted["directory"])
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)  # Python ignores them
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        os.execvpe(wanted["command"][0], wanted["command"], wanted["environment"])  # noqa: S606
    except BaseException as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        code = (error.errno or 0) if isinstance(error, OSError) else 0
        os.write(told, f"{code} {why}".encode())
    finally:
        os._exit(127)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    main()
    # Nothing is left to clean up, and the interpreter's own end takes longer than all of this.
    sys.stdout.flush()
    os._exit(0)
