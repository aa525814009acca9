"""What one request may take: its size, its hops, how long it waits for MongoDB.

Every callback carries in `X-Scheduler-Hops` the number of callbacks that led to it. One that calls the
scheduler's own API may trigger another, and so on, up to `MAX_HOPS`.

A request for one resource waits a short time for each answer of MongoDB; then it is a 503. One that may have
much to show (a page, a list, an export) first asks whether MongoDB answers at all, and then waits longer for
each answer. So does one that changes many resources, but its changes have no limit: they may take long for
good reasons.
"""

import re
from contextlib import AbstractContextManager

from flask import Flask, g, request

from scheduler_app.api.auth import PAGES
from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.scopes import SAFE_METHODS
from scheduler_app.api.services import real_services
from scheduler_app.store.mongo import answers_within
from scheduler_app.webserver.limits import MAX_BODY_BYTES, PREFIX, max_body_bytes


def register_size_limits(app: Flask) -> None:
    """Must precede everything that reads a body. The web server's own check is earlier, where it is ours."""
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES

    @app.before_request
    def allow_more() -> None:
        request.max_content_length = max_body_bytes(request.path)


HOPS_HEADER = "X-Scheduler-Hops"
MAX_HOPS = 4
_HOPS_NUMBER = re.compile(r"[0-9]{1,9}\Z")


def register_hop_limit(app: Flask) -> None:
    """Must follow authentication and precede everything that writes."""
    app.before_request(_check_hops)


def request_hops() -> int:
    """How many of the scheduler's callbacks led to this request."""
    return int(g.get("hops", 0))


def _check_hops() -> None:
    value = request.headers.get(HOPS_HEADER)
    if value is None or request.method in SAFE_METHODS:
        return
    if not _HOPS_NUMBER.match(value):
        field = {"pointer": f"/{HOPS_HEADER}", "detail": "must be a whole number, as callbacks carry it"}
        raise HttpProblem(400, f"{HOPS_HEADER}: {field['detail']}", [field])
    g.hops = int(value)
    if g.hops > MAX_HOPS:
        raise HttpProblem(
            508,
            f"this request came by {g.hops} callbacks of the scheduler, each of which called the scheduler"
            f" again; at most {MAX_HOPS} may: a schedule calls back to what triggers it",
        )


#: Answers are promised within 2 s and 5 s. pymongo looks for a server in steps of half a second, and may take
#: one more than it is given.
GET_SECONDS = 1.4
CHANGE_SECONDS = 4.4
#: For one question of a request that shows much.
MUCH_SECONDS = 10.0
#: A request that writes here is about one resource, though its path names none.
COLLECTIONS = (
    f"{PREFIX}/schedules",
    f"{PREFIX}/schedules/preview",
    f"{PREFIX}/messages",
    f"{PREFIX}/kill-switch",
    "/tasks",
)
READS = ("GET", "HEAD")


def register_time_limits(app: Flask) -> None:
    """Before what asks MongoDB who somebody is."""
    app.before_request(_begin_time_limit)
    app.teardown_request(_end_time_limit)


def register_mongo_check(app: Flask) -> None:
    """After it: MongoDB is asked nothing for those who may not ask."""
    app.before_request(_check_mongo)


def _begin_time_limit() -> None:
    if _is_page() or _rule().startswith((f"{PREFIX}/", "/tasks")):
        reads = request.method in READS or not _is_for_one_resource()
        _set_time_limit(GET_SECONDS if reads else CHANGE_SECONDS)


def _check_mongo() -> None:
    if "time_limit" not in g or _is_for_one_resource():
        return
    real_services().check_mongo()
    _end_time_limit(None)
    if _is_page() or request.method in READS:
        _set_time_limit(MUCH_SECONDS)


def _is_for_one_resource() -> bool:
    changes = request.method not in READS
    return not _is_page() and (">" in _rule() or (changes and _rule() in COLLECTIONS))


def _is_page() -> bool:
    return request.blueprint == PAGES and request.endpoint != f"{PAGES}.static"


def _rule() -> str:
    return request.url_rule.rule if request.url_rule is not None else ""


def _set_time_limit(seconds: float) -> None:
    g.time_limit = limit = answers_within(seconds)
    limit.__enter__()


def _end_time_limit(_: BaseException | None) -> None:
    limit: AbstractContextManager[None] | None = g.pop("time_limit", None)
    if limit is not None:
        limit.__exit__(None, None, None)
