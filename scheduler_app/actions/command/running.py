"""One command that runs: its guardian, what the worker's settings let it use, what it has printed, and how it
ended.

Of what it prints the beginning and the end are kept, and no secret of its environment in them.
"""

import json
import os
import pwd
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scheduler_app.config import InvalidSetting, Settings
from scheduler_app.domain.command_action import CommandAction
from scheduler_app.domain.event import Event
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.masking import MASK, visible

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of each process of a command, and as whom and where it runs."""

    memory_bytes: int
    cpu_seconds: int
    open_files: int
    file_bytes: int
    processes: int
    """Of the user as whom commands run, however they were started; 0: no limit."""
    niceness: int
    """More than the worker's; 19 is the most that there is."""
    directory: str
    uid: int | None
    """None: the worker's own user."""
    gid: int | None
    user: str
    home: str


def limits_of(settings: Settings) -> Limits:
    """Raises InvalidSetting for a user or a directory that there is not."""
    own = os.getuid()
    try:
        account = pwd.getpwnam(settings.command_user) if settings.command_user else pwd.getpwuid(own)
    except KeyError:
        if settings.command_user:
            raise InvalidSetting(
                f"COMMAND_USER {settings.command_user!r} is not a user of this host; create it or name one"
            ) from None
        account = None  # a container's user may have a number only
    if account is not None and account.pw_uid != own and own != 0:
        raise InvalidSetting("COMMAND_USER can be another user only where the worker is root; leave it out")
    directory = settings.command_directory or os.getcwd()
    if not os.path.isdir(directory):
        raise InvalidSetting(f"COMMAND_DIRECTORY {directory!r} is not a directory of this host")
    changes = account is not None and account.pw_uid != own
    return Limits(
        memory_bytes=settings.command_memory_mib * MIB,
        cpu_seconds=settings.command_cpu_seconds,
        open_files=settings.command_open_files,
        file_bytes=settings.command_file_mib * MIB,
        processes=settings.command_processes,
        niceness=settings.command_niceness,
        directory=directory,
        uid=account.pw_uid if account is not None and changes else None,
        gid=account.pw_gid if account is not None and changes else None,
        user=account.pw_name if account is not None else str(own),
        home=account.pw_dir if account is not None else "/",
    )


#: Kept of the beginning, and as much of the end.
KEPT_BYTES = 64 * 1024
#: Shorter values do not count as secrets: they stand in any text.
MIN_SECRET = 4


class Output:
    """Takes any amount, and keeps `KEPT_BYTES` of the beginning and of the end."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = KEPT_BYTES - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data)
        self._tail_bytes += len(data)
        while self._tail_bytes - len(self._tail[0]) >= KEPT_BYTES:
            self._tail_bytes -= len(self._tail.popleft())

    def text(self, secrets: Iterable[str]) -> str:
        """The text, with a mask for each secret, and with a line where something was left out."""
        head, tail = bytes(self._head), b"".join(self._tail)
        left_out = self.total - len(head) - KEPT_BYTES
        values = [value.encode() for value in secrets if len(value) >= MIN_SECRET]
        values.sort(key=len, reverse=True)
        if left_out <= 0:
            whole = _masked(head + tail, values)
            return _fitting(whole[:KEPT_BYTES]) + _fitting(whole[KEPT_BYTES:], from_end=True)
        # A secret that the cut divides would be left as two halves.
        head = _masked(_without_part(head, values, at_end=True), values)
        tail = _masked(_without_part(tail[-KEPT_BYTES:], values, at_end=False), values)
        return f"{_fitting(head)}\n[{left_out} bytes left out]\n{_fitting(tail, from_end=True)}"


def _masked(data: bytes, values: list[bytes]) -> bytes:
    for value in values:
        data = data.replace(value, MASK.encode())
    return data


def _without_part(data: bytes, values: list[bytes], *, at_end: bool) -> bytes:
    """Without the longest part of a value that the cut may have divided."""
    longest = 0
    for value in values:
        for length in range(min(len(value) - 1, len(data)), longest, -1):
            if data.endswith(value[:length]) if at_end else data.startswith(value[-length:]):
                longest = length
                break
    if not longest:
        return data
    return data[:-longest] if at_end else data[longest:]


def _fitting(data: bytes, *, from_end: bool = False) -> str:
    """The text, escaped, of which no more is kept than its share: what is not text takes several times its
    bytes, and all attempts of an event have to fit into one document."""
    shown = visible(data.decode("utf-8", "replace")).encode("utf-8", "replace")
    if len(shown) > KEPT_BYTES:
        shown = shown[-KEPT_BYTES:] if from_end else shown[:KEPT_BYTES]
    return shown.decode("utf-8", "ignore")


GUARDIAN = str(Path(__file__).with_name("guardian.py"))
#: From SIGTERM to SIGKILL.
GRACE_SECONDS = 3.0
#: How long after its SIGTERM a guardian that has not ended is killed itself.
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
