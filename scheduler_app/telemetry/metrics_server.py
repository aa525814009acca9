"""A process's own port: `/metrics` for Prometheus, `/healthz` for the service manager that restarts it.

It asks for no key. It listens on loopback unless METRICS_HOST says otherwise, which is safe only where the
network itself restricts access: between containers, behind a firewall. It shows counts, no names, and takes
no commands.
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
    # A scraper that hangs blocks its own thread only.
    daemon_threads = True


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Silent(WSGIRequestHandler):
    #: Seconds to wait for a client that sends nothing.
    timeout = 10

    def log_message(self, format: str, *args: Any) -> None:
        """Does not log scrapes."""


def serve_metrics(port: int, host: str, trouble: Callable[[], str | None], role: Role) -> None:
    """Listens in a thread until the process ends, and shows the metrics of `role`; port 0 means not at all.

    `trouble` returns what hangs, None for nothing: `/healthz` answers 503 with that text, or 200. Raises
    OSError when the port is taken.
    """
    if not port:
        return
    metrics: Callable[..., Iterable[bytes]] = make_wsgi_app(own_registry(role))

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/healthz":
            return metrics(environ, start_response)
        hangs = trouble()
        start_response("503 Service Unavailable" if hangs else "200 OK", [_TEXT])
        return [f"{hangs or 'ok'}\n".encode()]

    kind = _Server6 if ":" in host else _Server
    server = make_server(host, port, answer, kind, _Silent)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
