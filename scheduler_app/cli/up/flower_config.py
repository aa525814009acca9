"""Flower's configuration under `scheduler up` (`celery flower --conf=…/flower_config.py` reads this file).

Flower answers to any name by which it is reached, so that a page of a stranger, whose name has come to mean
127.0.0.1, could read it (DNS rebinding). It has no option against that: a rule before its own answers first.
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
        """An empty dict for a request to a name that is not this machine's own."""
        return None if is_loopback(urlsplit(f"//{request.host}").hostname or "") else {}


class _Refusal(RequestHandler):
    def prepare(self) -> None:
        self.set_status(_MISDIRECTED_REQUEST)
        self.finish("Flower answers here as 127.0.0.1 or localhost only.\n")


handlers.insert(0, Rule(_ForeignHost(), _Refusal))
