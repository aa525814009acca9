"""Calls one service by Apprise, whose plugins are others' code: they may connect to what callbacks may reach,
and start, write and read nothing on this machine.

Python tells an audit hook of each connection with the address in numbers, of each file and of each process,
and the hook cannot be taken away again (PEP 578).
"""

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scheduler_app.actions.http.guard import Guard, parse_networks
from scheduler_app.actions.notice.answer import NoticeAnswer
from scheduler_app.config.parsers import parse_ports

#: Where a plugin's code and data are.
_READABLE = (
    *(
        str(Path(each).resolve())
        for each in {sys.prefix, sys.base_prefix, *sys.path}
        if each not in ("", "/")
    ),
    *("/usr/share/zoneinfo", "/etc/mime.types", os.devnull, "/dev/urandom"),
)
_NEVER = frozenset(
    (
        *("subprocess.Popen", "os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.fork", "os.forkpty"),
        *("ctypes.dlopen", "os.kill", "os.killpg", "sqlite3.connect"),
        *("os.remove", "os.rename", "os.link", "os.symlink", "os.truncate", "os.mkdir", "os.rmdir"),
        *("os.chmod", "os.chown"),
    )
)

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
#: Which of the two, and what a name leads to, is not for whoever wrote the URL.
_REFUSED = (
    "refused by this worker's settings: the receiver has a private address or a denied port;"
    " see CALLBACK_ALLOWED_NETWORKS and CALLBACK_DENIED_PORTS"
)


def call_service(wanted: Mapping[str, Any]) -> NoticeAnswer:
    ca_bundle = wanted["ca_bundle"]
    if ca_bundle:
        os.environ["REQUESTS_CA_BUNDLE"] = ca_bundle
    sys.dont_write_bytecode = True
    import apprise

    said = PluginLog()
    logging.getLogger("apprise").addHandler(said)
    apprise.Apprise.instantiate("jsons://localhost")  # imports all that plugins need, before they are watched
    guard = Guard(parse_networks(wanted["allowed_networks"]), parse_ports(wanted["denied_ports"]))
    watch = PluginWatch(guard, (ca_bundle,) if ca_bundle else ())
    sys.addaudithook(watch)
    plugin = apprise.Apprise.instantiate(wanted["address"], suppress_exceptions=True)
    if plugin is None:
        return NoticeAnswer("PERMANENT", "Apprise does not understand this URL: set the channel again")
    caller = apprise.Apprise(asset=apprise.AppriseAsset(async_mode=False))
    caller.add(plugin)
    if caller.notify(body=wanted["text"], title=wanted["subject"], body_format=apprise.NotifyFormat.TEXT):
        return NoticeAnswer("SUCCESS")
    if watch.refused:
        return NoticeAnswer("PERMANENT", _REFUSED)
    return NoticeAnswer("RETRY", "the service did not take it", said.text()[:1000])


class PluginWatch:
    """The audit hook."""

    def __init__(self, guard: Guard, readable: tuple[str, ...]) -> None:
        self.refused = False
        """Whether an address was."""
        self._guard = guard
        self._readable = _READABLE + readable

    def __call__(self, event: str, arguments: Any) -> None:
        if event in ("socket.connect", "socket.sendto"):
            self._judge_address(arguments[1])
        elif event == "socket.sendmsg":
            if arguments[1] is not None:  # else it is connected, which was judged
                self._judge_address(arguments[1])
        elif event == "open":
            self._judge_file(*arguments)
        elif event in _NEVER:
            raise PermissionError("a service may not start programs, or change what is on this machine")

    def _judge_address(self, address: Any) -> None:
        is_network = isinstance(address, tuple) and len(address) >= 2
        if not is_network or self._guard.port_refusal(address[1]) or self._guard.refusal(address[0]):
            self.refused = True
            raise PermissionError(_REFUSED)

    def _judge_file(self, path: Any, mode: str | None, flags: int) -> None:
        if isinstance(path, int):
            return
        writes = bool(flags & _WRITING) or bool(set(mode or "") & set("wax+"))
        if writes or not os.path.realpath(os.fsdecode(path)).startswith(self._readable):
            raise PermissionError("a service may not open files of this machine")


class PluginLog(logging.Handler):
    """What Apprise says of a call."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if len(self._lines) < 20:
            self._lines.append(record.getMessage()[:300])

    def text(self) -> str:
        return " ".join(self._lines)
