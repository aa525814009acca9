"""How long a request waits for a MongoDB that does not answer: then it is a 503.

A request for one resource waits a short time for each answer. One that may have much to show (a page, a list,
an export) first asks whether MongoDB answers at all, and then waits longer for each answer. So does one that
changes many resources, but its changes have no limit: they may take long for good reasons.
"""

from contextlib import AbstractContextManager

from flask import Flask, g, request

from scheduler_app.api.auth import PAGES
from scheduler_app.api.services import real_services
from scheduler_app.store import answers_within
from scheduler_app.webserver.api_paths import PREFIX

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


def register(app: Flask) -> None:
    """Before what asks MongoDB who somebody is."""
    app.before_request(_begin)
    app.teardown_request(_end)


def register_question(app: Flask) -> None:
    """After it: MongoDB is asked nothing for those who may not ask."""
    app.before_request(_ask)


def _begin() -> None:
    if _is_page() or _rule().startswith((f"{PREFIX}/", "/tasks")):
        reads = request.method in READS or not _is_of_one()
        _limit(GET_SECONDS if reads else CHANGE_SECONDS)


def _ask() -> None:
    if "time_limit" not in g or _is_of_one():
        return
    real_services().store.mongo.hello()
    _end(None)
    if _is_page() or request.method in READS:
        _limit(MUCH_SECONDS)


def _is_of_one() -> bool:
    changes = request.method not in READS
    return not _is_page() and (">" in _rule() or (changes and _rule() in COLLECTIONS))


def _is_page() -> bool:
    return request.blueprint == PAGES and request.endpoint != f"{PAGES}.static"


def _rule() -> str:
    return request.url_rule.rule if request.url_rule is not None else ""


def _limit(seconds: float) -> None:
    g.time_limit = limit = answers_within(seconds)
    limit.__enter__()


def _end(_: BaseException | None) -> None:
    limit: AbstractContextManager[None] | None = g.pop("time_limit", None)
    if limit is not None:
        limit.__exit__(None, None, None)
