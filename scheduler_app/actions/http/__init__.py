"""The one door to strangers: sending HTTP callbacks, guarded and signed."""

from scheduler_app.actions.http.answer import Answer
from scheduler_app.actions.http.guard import Guard, parse_networks
from scheduler_app.actions.http.headers import check_header, headers_for
from scheduler_app.actions.http.reachable import check_reachable
from scheduler_app.actions.http.redaction import redacted
from scheduler_app.actions.http.request import Request
from scheduler_app.actions.http.retry_after import parse_retry_after
from scheduler_app.actions.http.sender import Sender
from scheduler_app.actions.http.signature import check_secret, new_secret, sign
from scheduler_app.actions.http.url import check_url

__all__ = [
    "Answer",
    "Guard",
    "Request",
    "Sender",
    "check_header",
    "check_reachable",
    "check_secret",
    "check_url",
    "headers_for",
    "new_secret",
    "parse_networks",
    "parse_retry_after",
    "redacted",
    "sign",
]
