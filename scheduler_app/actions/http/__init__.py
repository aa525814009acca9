"""The action kind `http`: sends callbacks to strangers, guarded and signed.

What `sender` has is not among the names here: it imports libcurl, which only workers need.
"""

from scheduler_app.actions.http.guard import Guard, check_reachable, guard_of, parse_networks
from scheduler_app.actions.http.request import (
    Request,
    check_header,
    check_secret,
    check_url,
    headers_for,
    new_secret,
    sign,
)
from scheduler_app.actions.http.response import Response, parse_retry_after, redacted
