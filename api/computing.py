"""Shares out the process's time for requests that compute: previews, explanations, calendars.

Computing threads hold Python's lock in turns, so that each of them slows all other requests down. One key, or
one client address where there are no keys, has one such request computed at a time in each process; a few
more wait for their turn, the others are refused.
"""

from collections import Counter
from threading import Condition

from flask import Flask, current_app, g, request

from scheduler_app.api.problems import Problem

ENDPOINTS = frozenset(
    (
        "previews.preview_rule",
        "previews.preview_schedule",
        "explanations.explain_schedule_at",
        "calendars.list_calendar_days",
        "calendars_of_schedules.get_calendar_file",
        "calendars_of_schedules.get_schedule_calendar_file",
        "tzdata.check_tzdata",
        "pages.calendar_view",
        "pages.pick",
        "pages.preview_edited",
        "pages.preview_when",
        "pages.schedule",
        "pages.show_effect",
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


def register(app: Flask) -> None:
    """Must follow authentication and whatever refuses a request without computing."""
    app.before_request(_take_turn)
    app.teardown_request(_give_back)


def _take_turn() -> None:
    if request.endpoint not in ENDPOINTS or request.routing_exception is not None:
        return
    owner = g.owner if g.get("key_name") is not None else request.remote_addr or ""
    turns: Turns = current_app.extensions["turns"]
    if not turns.take(owner):
        raise Problem(
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
