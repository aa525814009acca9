"""Executes notices: the seam's side. Each is sent by a process of its own, which is killed at its time.

What is sent, and by what, is given to that process alone and by its standard input: the mail server with its
password, or the URL of a service, whose code is Apprise's and not ours.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, NamedTuple

from scheduler_app.actions.kind import Outcome
from scheduler_app.actions.notice.line import NoticeLine, NoticeOwner
from scheduler_app.actions.threaded import ThreadedExecutor, ToldOutcome
from scheduler_app.clock import monotonic
from scheduler_app.config import Settings
from scheduler_app.domain.event import Event
from scheduler_app.domain.ids import tenant_of
from scheduler_app.domain.mail_server import MailServer
from scheduler_app.domain.masking import MASK, one_line
from scheduler_app.domain.notice_action import ChannelKind, NoticeAction
from scheduler_app.domain.schedule import Deliverable
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

#: Processes at once that call services: one takes 60 MiB, 45 of them its own.
MAX_PROCESSES = 8
#: Notices for services that wait for a process or have one; others are tried again later.
MAX_HELD = 1_000
#: Notices of one receiver in one worker. All mail has one: as many processes send it, of 20 MiB each.
CONCURRENCY = 4
#: More than delivery starts at once, so that an attempt never waits for a thread behind some that hang.
MAX_THREADS = 32
MAX_SNIPPET = 1_024
#: Shorter texts are parts of ordinary words, and no secrets.
MIN_SECRET = 6
_PROGRAM = (sys.executable, "-I", "-m", "scheduler_app.actions.notice.sending")


class NoticeRequest(NamedTuple):
    """A notice that is to be sent."""

    serial: int
    event: Event
    action: NoticeAction
    now: datetime
    until: float


class NoticeExecutor(ThreadedExecutor[NoticeRequest]):
    """An `Executor` of notices."""

    concurrency = CONCURRENCY

    def __init__(self, settings: Settings, ready: Callable[[], None]) -> None:
        super().__init__(ready)
        self._server = MailServer.parse(settings.smtp_url) if settings.smtp_url else None
        self._given = {
            "ca_bundle": settings.callback_ca_bundle,
            "allowed_networks": settings.callback_allowed_networks,
            "denied_ports": settings.callback_denied_ports,
        }
        self._smtp_url = settings.smtp_url
        self._threads = ThreadPoolExecutor(MAX_THREADS, "notice")
        self._line = NoticeLine[NoticeRequest](running=MAX_PROCESSES, held=MAX_HELD)
        self._line_lock = threading.Lock()
        self._closed = False
        self._lock = threading.Lock()
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._first = 0
        """The serial number before which all attempts are interrupted."""

    def start(self, event: Event, deliverable: Deliverable, now: datetime) -> None:
        action = deliverable.action
        if not isinstance(action, NoticeAction):
            raise TypeError(f"an action of kind {action.kind} is no notice")
        asked = self._begin(
            event.id,
            deliverable.timeout_seconds,
            lambda serial, until: NoticeRequest(serial, event, action, now, until),
        )
        if action.channel is ChannelKind.EMAIL and self._server is None:
            # And therefore not permanent: a worker with other settings may send it.
            self._tell(_failed(asked, "this worker has no mail server: set its SMTP_URL"))
        elif action.channel is ChannelKind.EMAIL:
            self._threads.submit(self._send, asked)
        else:
            self._call(asked, NoticeOwner(tenant_of(event.id), action.receiver))

    def interrupt(self) -> None:
        with self._lock:
            self._first = self._forget()
            for process in self._running.values():
                process.kill()

    def close(self) -> None:
        with self._line_lock:
            self._closed = True
        self.interrupt()
        self._threads.shutdown(cancel_futures=True)

    def _call(self, asked: NoticeRequest, owner: NoticeOwner) -> None:
        with self._line_lock:
            is_held = self._line.add(owner, asked)
            self._call_next()
        if not is_held:
            self._tell(_failed(asked, "this worker has as many notices of this tenant as it holds"))

    def _call_next(self) -> None:
        while not self._closed and (found := self._line.next()) is not None:
            self._threads.submit(self._send_in_turn, *found)

    def _send_in_turn(self, owner: NoticeOwner, asked: NoticeRequest) -> None:
        self._send(asked)
        with self._line_lock:
            self._line.ended(owner)
            self._call_next()

    def _why_overdue(self, asked: NoticeRequest, seconds: float) -> str:
        return f"the notice was not sent within {seconds:g} s"

    def _send(self, asked: NoticeRequest) -> None:
        try:
            told = self._sent(asked)
        except Exception as error:
            log.exception("notice.broken", message="A notice breaks our code", event_id=asked.event.id)
            told = _failed(asked, f"{type(error).__name__} while it was sent")
        if told is not None:
            self._tell(told)

    def _sent(self, asked: NoticeRequest) -> ToldOutcome | None:
        """None where its time is over, or it was interrupted."""
        with self._lock:
            if asked.serial < self._first or asked.until <= monotonic():
                return None
            try:
                process = subprocess.Popen(  # noqa: S603 - a module of ours, by this interpreter
                    _PROGRAM,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    cwd="/",
                    env={"LANG": "C.UTF-8"},
                )
            except OSError as error:
                return _failed(asked, f"no process could be started for it: {error.strerror}")
            self._running[asked.serial] = process
        with process:
            try:
                answer, _ = process.communicate(self._specification(asked), asked.until - monotonic())
            except subprocess.TimeoutExpired:
                return None
            finally:
                process.kill()
                with self._lock:
                    del self._running[asked.serial]
        return self._told_by(asked, answer)

    def _specification(self, asked: NoticeRequest) -> bytes:
        action = asked.action
        wanted: dict[str, Any] = {
            **self._given,
            "channel": action.channel.value,
            "address": action.address,
            "subject": action.subject,
            "text": action.text,
            "event_id": asked.event.id,
            "now": asked.now.isoformat(),
            "seconds": max(0.1, asked.until - monotonic()),
        }
        if action.channel is ChannelKind.EMAIL:
            wanted["smtp_url"] = self._smtp_url
        return json.dumps(wanted).encode()

    def _told_by(self, asked: NoticeRequest, answer: bytes) -> ToldOutcome:
        """What the process has answered, without the secrets that it was given."""
        try:
            found = json.loads(answer)
            return ToldOutcome(
                asked.serial,
                asked.event.id,
                Outcome[found["outcome"]],
                self._redacted(found["reason"], asked.action),
                self._redacted(found["snippet"], asked.action)[:MAX_SNIPPET],
                found["status_code"],
            )
        except (ValueError, KeyError, TypeError):
            return _failed(asked, "the process that sends it ended before it had an answer")

    def _redacted(self, text: str, action: NoticeAction) -> str:
        secrets = {action.address, *_parts(action.address)}
        if action.channel is ChannelKind.EMAIL and self._server is not None:
            secrets |= {self._server.password}
        text = one_line(text)
        for secret in sorted((each for each in secrets if len(each) >= MIN_SECRET), key=len, reverse=True):
            text = text.replace(secret, MASK)
        return text


def _parts(address: str) -> list[str]:
    """What may be a secret in an address: each part between its marks."""
    for mark in "/@:?&=#":
        address = address.replace(mark, " ")
    return address.split()


def _failed(asked: NoticeRequest, reason: str) -> ToldOutcome:
    return ToldOutcome(asked.serial, asked.event.id, Outcome.RETRY, reason)
