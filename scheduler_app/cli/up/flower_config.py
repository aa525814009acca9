"""Flower's configuration under `scheduler up` (`celery flower --conf=…/flower_config.py` reads this file).

Flower answers whatever the Host header says. A web page of an attacker, whose name resolves to 127.0.0.1,
could therefore read it (DNS rebinding). Flower has no option against that, so a rule in front of its own
refuses such requests.
"""

from typing import Any
from urllib.parse import urlsplit

from flower.urls import handlers
from tornado.httputil import HTTPServerRequest
from tornado.routing import Matcher, Rule
from tornado.web import RequestHandler

from scheduler_app.config import is_loopback

_MISDIRECTED_REQUEST = 421


class _ForeignHost(Matcher):
    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        """Returns an empty dict (a match) for a request whose Host is not this machine's loopback."""
        return None if is_loopback(urlsplit(f"//{request.host}").hostname or "") else {}


class _Refusal(RequestHandler):
    def prepare(self) -> None:
        self.set_status(_MISDIRECTED_REQUEST)
        self.finish("Flower answers here as 127.0.0.1 or localhost only.\n")


handlers.insert(0, Rule(_ForeignHost(), _Refusal))
