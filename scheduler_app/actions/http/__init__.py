"""The action kind `http`: sends callbacks to strangers, guarded and signed.

`sender` and `executor` are not among the names here: they import libcurl, which only workers need.
"""

from scheduler_app.actions.http.guard import Guard, guard_of, parse_networks
from scheduler_app.actions.http.headers import check_header, headers_for
from scheduler_app.actions.http.reachable import check_reachable
from scheduler_app.actions.http.redaction import redacted
from scheduler_app.actions.http.request import Request
from scheduler_app.actions.http.response import Response
from scheduler_app.actions.http.retry_after import parse_retry_after
from scheduler_app.actions.http.signature import check_secret, new_secret, sign
from scheduler_app.actions.http.url import check_url

__all__ = [
    "Guard",
    "Request",
    "Response",
    "check_header",
    "check_reachable",
    "check_secret",
    "check_url",
    "guard_of",
    "headers_for",
    "new_secret",
    "parse_networks",
    "parse_retry_after",
    "redacted",
    "sign",
]
