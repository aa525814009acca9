"""`X-Scheduler-Hops`: protection against callbacks that trigger each other in a loop.

Every callback carries the number of callbacks that led to it. One that calls the scheduler's own API may
trigger another, and so on, up to `MAX_HOPS`.
"""

import re

from flask import Flask, g, request

from scheduler_app.api.cross_site import SAFE_METHODS
from scheduler_app.api.problems import Problem

HEADER = "X-Scheduler-Hops"
MAX_HOPS = 4
_NUMBER = re.compile(r"[0-9]{1,9}\Z")


def register(app: Flask) -> None:
    """Must follow authentication and precede everything that writes."""
    app.before_request(_check)


def request_hops() -> int:
    """How many of the scheduler's callbacks led to this request."""
    return int(g.get("hops", 0))


def _check() -> None:
    value = request.headers.get(HEADER)
    if value is None or request.method in SAFE_METHODS:
        return
    if not _NUMBER.match(value):
        field = {"pointer": f"/{HEADER}", "detail": "must be a whole number, as callbacks carry it"}
        raise Problem(400, f"{HEADER}: {field['detail']}", [field])
    g.hops = int(value)
    if g.hops > MAX_HOPS:
        raise Problem(
            508,
            f"this request came by {g.hops} callbacks of the scheduler, each of which called the scheduler"
            f" again; at most {MAX_HOPS} may: a schedule calls back to what triggers it",
        )
