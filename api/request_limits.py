"""What one request may take: its size, its hops, how long it waits for MongoDB, its turn to compute.

Every callback carries in `X-Scheduler-Hops` the number of callbacks that led to it. One that calls the
scheduler's own API may trigger another, and so on, up to `MAX_HOPS`.

A request for one resource waits a short time for each answer of MongoDB; then it is a 503. One that may have
much to show (a page, a list, an export) first asks whether MongoDB answers at all, and then waits longer for
each answer. So does one that changes many resources, but its changes have no limit: they may take long for
good reasons.

Computing threads (previews, explanations, calendars) hold Python's lock in turns, so that each of them slows
all other requests down. One key, or one client address where there are no keys, has one such request computed
at a time in each process; a few more wait for their turn, the others are refused. A tenant that is not the
default one may have hundreds of keys: they count as one, so that it leaves others their turns.
"""

import re
from collections import Counter
from contextlib import AbstractContextManager
from threading import Condition

from flask import Flask, current_app, g, request

from scheduler_app.api.auth import PAGES
from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.scopes import SAFE_METHODS
from scheduler_app.api.services import caller, real_services
from scheduler_app.domain.ids import TENANT
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


COMPUTING_ENDPOINTS = frozenset(
    (
        "previews.preview_rule",
        "previews.preview_schedule",
        "explanations.explain_schedule_at",
        "calendars.list_calendar_days",
        "ledger.ledger",
        "ledger.verify_ledger",
        "run_calendar.get_run_calendar",
        "search.search",
        "tags.get_tag_summary",
        "calendars_of_schedules.get_calendar_file",
        "calendars_of_schedules.get_schedule_calendar_file",
        "tzdata.check_tzdata",
        "pages.ask_backfill",
        "pages.calendar_view",
        "pages.go",
        "pages.now_and_next",
        "pages.pick",
        "pages.preview_edited",
        "pages.preview_when",
        "pages.schedule",
        "pages.schedule_file",
        "pages.show_effect",
        "pages.tag_page",
    )
)
#: Requests in one process: of one key, and of all together.
RUNNING_EACH, RUNNING = 1, 2
WAITING_EACH, WAITING = 4, 8
WAIT_SECONDS = 2.0
RETRY_AFTER_SECONDS = 1


class Turns:
    """Who computes now, and who waits for a turn."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._running: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return self._waiting.total()

    @property
    def known(self) -> set[str]:
        """The owners that compute or wait."""
        return {*self._running, *self._waiting}

    def take(self, owner: str, seconds: float = WAIT_SECONDS) -> bool:
        """Waits for a turn, which `give_back` ends; False where too many wait, or for too long."""
        with self._changed:
            if self._is_free(owner) and not self._waiting[owner]:
                self._running[owner] += 1
                return True
            if self._waiting[owner] >= WAITING_EACH or self._waiting.total() >= WAITING:
                return False
            self._waiting[owner] += 1
            try:
                if not self._changed.wait_for(lambda: self._is_free(owner), seconds):
                    return False
                self._running[owner] += 1
                return True
            finally:
                self._subtract(self._waiting, owner)

    def give_back(self, owner: str) -> None:
        with self._changed:
            self._subtract(self._running, owner)
            self._changed.notify_all()

    def _is_free(self, owner: str) -> bool:
        return self._running[owner] < RUNNING_EACH and self._running.total() < RUNNING

    @staticmethod
    def _subtract(counts: Counter[str], owner: str) -> None:
        """Owners that have none are forgotten: there may be any number of addresses."""
        counts[owner] -= 1
        if not counts[owner]:
            del counts[owner]


def register_turns(app: Flask) -> None:
    """Must follow authentication and whatever refuses a request without computing."""
    app.before_request(_take_turn)
    app.teardown_request(_give_back)


def _take_turn() -> None:
    if request.endpoint not in COMPUTING_ENDPOINTS or request.routing_exception is not None:
        return
    who = caller()
    owner = who.owner if who.name is not None else request.remote_addr or ""
    if who.tenant not in (None, TENANT):
        owner = f"tenant {who.tenant}"
    turns: Turns = current_app.extensions["turns"]
    if not turns.take(owner):
        raise HttpProblem(
            429,
            "too many previews, explanations and calendars are being computed for this key or address; try"
            " again in a moment, a few at a time",
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
        )
    g.computing_for = owner


def _give_back(_: object) -> None:
    owner = g.pop("computing_for", None)
    if owner is not None:
        turns: Turns = current_app.extensions["turns"]
        turns.give_back(owner)
