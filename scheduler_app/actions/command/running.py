"""One command that runs: its guardian, what it has printed, and how it ended."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scheduler_app.actions.command.limits import Limits
from scheduler_app.actions.command.output import Output
from scheduler_app.domain.command_action import CommandAction
from scheduler_app.domain.event import Event
from scheduler_app.domain.instants import shown_instant

GUARDIAN = str(Path(__file__).with_name("guardian.py"))
#: From SIGTERM to SIGKILL.
GRACE_SECONDS = 3.0
#: A guardian that has not ended so long after its SIGTERM is killed itself.
LONGEST_END_SECONDS = GRACE_SECONDS + 7.0
READ_BYTES = 64 * 1024
#: What a pipe can hold when the last writer has gone.
MAX_LEFT_BYTES = 2**20
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def environment_of(action: CommandAction, event: Event, limits: Limits) -> dict[str, str]:
    """The whole environment of a command: nothing of the worker's own, which has passwords in it."""
    return dict(action.env) | {
        "PATH": PATH,
        "HOME": limits.home,
        "USER": limits.user,
        "LOGNAME": limits.user,
        "LANG": "C.UTF-8",
        "SCHEDULER_EVENT_ID": event.id,
        "SCHEDULER_SCHEDULE_ID": event.schedule_id,
        "SCHEDULER_RUN_TIME": shown_instant(event.run_time),
        "SCHEDULER_ATTEMPT": str(event.attempt + 1),
    }


def specification(action: CommandAction, event: Event, limits: Limits, report: int) -> dict[str, Any]:
    """What the guardian is told; `report` is the descriptor that it answers to."""
    words = ("/bin/sh", "-c", action.command[0]) if action.shell else action.command
    return {
        "worker": os.getpid(),
        "report": report,
        "grace": GRACE_SECONDS,
        "command": list(words),
        "environment": environment_of(action, event, limits),
        "directory": limits.directory,
        "uid": limits.uid,
        "gid": limits.gid,
        "user": limits.user,
        "niceness": limits.niceness,
        "limits": {
            "RLIMIT_AS": limits.memory_bytes,
            "RLIMIT_CPU": limits.cpu_seconds,
            "RLIMIT_NOFILE": limits.open_files,
            "RLIMIT_FSIZE": limits.file_bytes,
            "RLIMIT_CORE": 0,
        }
        | ({"RLIMIT_NPROC": limits.processes} if limits.processes else {}),
    }


@dataclass(eq=False, slots=True)
class Running:
    """A command between its start and the end of its guardian. One thread owns it, the one that started it:
    the guardian ends when that thread does."""

    event: Event
    action: CommandAction
    timeout_seconds: float
    started_at: float
    """By the monotonic clock."""
    guardian: subprocess.Popen[bytes]
    pidfd: int
    printed: int
    report: int
    output: Output = field(default_factory=Output)
    terminated_at: float | None = None
    timed_out: bool = False

    @classmethod
    def start(
        cls,
        event: Event,
        action: CommandAction,
        timeout_seconds: float,
        limits: Limits,
        *,
        at: float,
    ) -> "Running":
        """Starts the guardian, which starts the command; its time counts from `at`. Raises OSError where
        there is no room for it."""
        opened: list[int] = []
        try:
            printed, printing = _pipe(opened)
            report, reporting = _pipe(opened)
            given = os.memfd_create("command")
            opened.append(given)
            os.write(given, json.dumps(specification(action, event, limits, reporting)).encode())
            os.lseek(given, 0, os.SEEK_SET)
            guardian = subprocess.Popen(  # noqa: S603 - this file of ours, by this interpreter
                (sys.executable, "-I", "-S", GUARDIAN),
                stdin=given,
                stdout=printing,
                stderr=printing,
                pass_fds=(reporting,),
                start_new_session=True,
                cwd="/",
                env={"LANG": "C.UTF-8"},
            )
            pidfd = os.pidfd_open(guardian.pid)
            opened = [printing, reporting, given]
        finally:
            for number in opened:
                os.close(number)
        os.set_blocking(printed, False)
        return cls(event, action, timeout_seconds, at, guardian, pidfd, printed, report)

    @property
    def limit_at(self) -> float:
        """When something has to be done about it, by the monotonic clock."""
        if self.terminated_at is not None:
            return self.terminated_at + LONGEST_END_SECONDS
        return self.started_at + self.timeout_seconds

    def enforce(self, at: float) -> None:
        """The limit is over: ends it, or kills a guardian that should have ended by now."""
        if self.terminated_at is None:
            self.timed_out = True
            self.terminate(at)
        else:
            self.terminated_at = at
            self.guardian.kill()

    def terminate(self, at: float) -> None:
        """Begins its end: SIGTERM, the grace period, SIGKILL."""
        if self.terminated_at is None:
            self.terminated_at = at
            with suppress(ProcessLookupError):
                self.guardian.send_signal(signal.SIGTERM)

    def read(self) -> bool:
        """Takes what it has printed, a part of it; False at the end of it."""
        try:
            data = os.read(self.printed, READ_BYTES)
        except BlockingIOError:
            return True
        self.output.add(data)
        return bool(data)

    def finish(self) -> dict[str, Any]:
        """Collects the guardian, which has ended; returns its report, {} where it has not written one."""
        self.guardian.wait()
        left = 0
        with suppress(BlockingIOError):
            while left < MAX_LEFT_BYTES and (data := os.read(self.printed, READ_BYTES)):
                self.output.add(data)
                left += len(data)
        os.set_blocking(self.report, False)
        with suppress(BlockingIOError, ValueError):
            told = json.loads(os.read(self.report, READ_BYTES))
            if isinstance(told, dict):
                return told
        return {}

    def close(self) -> None:
        for number in (self.pidfd, self.printed, self.report):
            os.close(number)


def _pipe(opened: list[int]) -> tuple[int, int]:
    ends = os.pipe()
    opened += ends
    return ends
