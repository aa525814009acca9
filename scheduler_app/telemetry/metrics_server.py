"""A process's own port: `/metrics` for Prometheus, `/healthz` for whoever restarts what hangs.

There is no key on it. It listens on loopback unless METRICS_HOST says otherwise, which is right only where
the network itself decides who may come in: between containers, behind a firewall. It tells counts and no
names, and takes no commands.
"""

import socket
import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import make_wsgi_app

from scheduler_app.telemetry.metrics import Role, own_registry

_TEXT = ("Content-Type", "text/plain; charset=utf-8")


class _Server(ThreadingMixIn, WSGIServer):
    # A scraper that hangs holds its own thread, and not the next one's.
    daemon_threads = True


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Silent(WSGIRequestHandler):
    #: For a client that connects and says nothing, seconds.
    timeout = 10

    def log_message(self, format: str, *args: Any) -> None:
        """Scrapes are no news."""


def serve_metrics(port: int, host: str, trouble: Callable[[], str | None], role: Role) -> None:
    """Listens in a thread until the process ends; port 0 means not at all. Shown is what a process of `role`
    counts.

    `trouble` says what hangs, None for nothing: `/healthz` answers 503 with it, or 200. Raises OSError when
    the port is taken.
    """
    if not port:
        return
    metrics: Callable[..., Iterable[bytes]] = make_wsgi_app(own_registry(role))

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/healthz":
            return metrics(environ, start_response)
        complaint = trouble()
        start_response("503 Service Unavailable" if complaint else "200 OK", [_TEXT])
        return [f"{complaint or 'ok'}\n".encode()]

    kind = _Server6 if ":" in host else _Server
    server = make_server(host, port, answer, kind, _Silent)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
