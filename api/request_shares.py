"""What one caller may take of what all callers share: requests a second, threads, turns to compute.

A caller is a key, or a client address where there are no keys. A tenant that is not the default one may have
hundreds of keys: they count as one caller, so that it leaves others their share.

The quotas of tenants are judged where something is made; what they leave is said here, too.

Requests a second are limited where the tenant, or the key, has such a limit: flow control counts them in
Redis, for all processes of the API together. Without Redis nothing is refused.

Such a tenant has at most half of the threads of a process, and less while others have many of them. Who asks
for nothing else than lists takes no thread from others' requests for long, and no other limit would see that.

Computing threads (previews, explanations, calendars) hold Python's lock in turns, so that each of them slows
all other requests down. One caller has one such request computed at a time in each process; a few more wait
for their turn, the others are refused. While others ask for anything, a caller has a tenth of a CPU after its
first half a second of it.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Condition
from time import thread_time
from typing import Any, NamedTuple

from flask import Flask, Response, current_app, g, request

from scheduler_app.api.acts import used_quotas
from scheduler_app.api.auth import OPEN_PATHS, PAGES
from scheduler_app.api.known_keys import known_keys
from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.services import caller, services
from scheduler_app.clock import monotonic
from scheduler_app.domain.api_key import Caller
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.quota import DAY_SECONDS
from scheduler_app.domain.request_rate import RateState, RequestRate
from scheduler_app.webserver.limits import THREADS

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


class Shares(NamedTuple):
    """What callers may have of one thing in a process."""

    each: int
    """Of one caller; and never more than what is left (a dynamic threshold, Choudhury and Hahne, 1998)."""
    all: int
    waiting_each: int
    waiting: int


COMPUTING_SHARES = Shares(each=1, all=2, waiting_each=4, waiting=8)
#: With what is left as the bound, a tenant alone has half of the threads, and two have a third each. Those
#: that wait take a thread, too.
THREAD_SHARES = Shares(each=THREADS, all=THREADS, waiting_each=2, waiting=4)
WAIT_SECONDS = 2.0
RETRY_AFTER_SECONDS = 1
#: While others ask for something, one of so many seconds may be computed for a caller,
SHARE_OF_CPU = 10
#: and that of so many seconds at once.
ALLOWANCE_SECONDS = 5.0
#: Whoever has asked for something within this time is there.
THERE_SECONDS = 2.0


class Turns:
    """Who has a share now, and who waits for one. Threads may share it."""

    def __init__(
        self, shares: Shares, *, share_of_cpu: int = 1, elapsed: Callable[[], float] = monotonic
    ) -> None:
        """`share_of_cpu`: see `SHARE_OF_CPU`. `elapsed` gives seconds."""
        self._shares = shares
        self._share_of_cpu = share_of_cpu
        self._elapsed = elapsed
        self._changed = Condition()
        self._running: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self._spent_until: dict[str, float] = {}
        """Until when owners have used their share of the CPU."""
        self._last, self._before = ("", -math.inf), ("", -math.inf)

    @property
    def waiting(self) -> int:
        """How many wait."""
        return self._waiting.total()

    @property
    def known(self) -> set[str]:
        """The owners that have a turn, or wait for one."""
        return {*self._running, *self._waiting}

    @property
    def spent(self) -> set[str]:
        """The owners that have used their share of the CPU, as far as is known."""
        return set(self._spent_until)

    def seen(self, owner: str) -> None:
        """Notes that it asks for something, whatever that is."""
        if owner != self._last[0]:
            self._before = self._last
        self._last = owner, self._elapsed()

    def take(self, owner: str, seconds: float = WAIT_SECONDS) -> bool:
        """Waits for a turn, which `give_back` ends; False where too many wait, or for too long."""
        with self._changed:
            if self._waits_for(owner) == 0 and not self._waiting[owner]:
                self._running[owner] += 1
                return True
            if self._waiting[owner] >= self._shares.waiting_each or self.waiting >= self._shares.waiting:
                return False
            self._waiting[owner] += 1
            until = self._elapsed() + seconds
            try:
                while (pause := self._waits_for(owner)) > 0:
                    left = until - self._elapsed()
                    if left <= 0:
                        return False
                    self._changed.wait(min(left, pause))
                self._running[owner] += 1
                return True
            finally:
                self._subtract(self._waiting, owner)

    def give_back(self, owner: str, took: float = 0.0) -> None:
        """Ends a turn, in which `took` seconds were computed."""
        with self._changed:
            self._subtract(self._running, owner)
            now = self._elapsed()
            self._spent_until = {each: until for each, until in self._spent_until.items() if until > now}
            if took and self._share_of_cpu > 1:
                spent = max(now, self._spent_until.get(owner, now)) + took * self._share_of_cpu
                self._spent_until[owner] = min(spent, now + ALLOWANCE_SECONDS + WAIT_SECONDS)
            self._changed.notify_all()

    def _waits_for(self, owner: str) -> float:
        """0 where it may have a turn; else after how long to look again, if nobody notifies it."""
        left = self._shares.all - self._running.total()
        if self._running[owner] >= min(self._shares.each, left):
            return math.inf
        now = self._elapsed()
        other = self._before if self._last[0] == owner else self._last
        if other[1] < now - THERE_SECONDS:
            return 0.0
        return max(0.0, self._spent_until.get(owner, now) - now - ALLOWANCE_SECONDS)

    @staticmethod
    def _subtract(counts: Counter[str], owner: str) -> None:
        """Owners that have none are forgotten: there may be any number of addresses."""
        counts[owner] -= 1
        if not counts[owner]:
            del counts[owner]


def register_shares(app: Flask) -> None:
    """Must follow authentication, and precede whatever asks MongoDB for more than a key."""
    app.before_request(_check_rates)
    app.before_request(_take_thread)
    app.after_request(_keep_thread_while_read)
    app.after_request(_show_rates)
    app.teardown_request(_give_thread_back)


def register_computing_turns(app: Flask) -> None:
    """Must follow authentication and whatever refuses a request without computing."""
    app.before_request(_take_turn)
    app.teardown_request(_give_turn_back)


def new_turns() -> tuple[Turns, Turns]:
    """The turns to compute of a process, and its threads."""
    return Turns(COMPUTING_SHARES, share_of_cpu=SHARE_OF_CPU), Turns(THREAD_SHARES)


def _check_rates() -> None:
    if request.path.startswith(OPEN_PATHS):
        return  # health checks answer while MongoDB does not, and nobody limits them
    rates = _rates(caller()) if request.blueprint != PAGES else ()
    if not rates:
        return
    g.request_rates = states = services().request_rates.take(rates)
    for each in states:
        if each.wait > 0:
            raise HttpProblem(
                429,
                f"{each.rate.whose} may make {each.rate.per_second:g} requests a second: wait as long as"
                " Retry-After says, send fewer, or ask an operator for more",
                headers={"Retry-After": str(math.ceil(each.wait))},
            )


def _rates(who: Caller) -> Sequence[RequestRate]:
    found = known_keys().tenants.get(who.tenant) if who.tenant is not None else None
    of_tenant = None if found is None else found.limits.request_rate(found.name)
    return [each for each in (of_tenant, who.rate) if each is not None]


def _show_rates(response: Response) -> Response:
    """As draft-ietf-httpapi-ratelimit-headers-10 has them."""
    states: Sequence[RateState] = g.get("request_rates", ())
    policies = [f'"{each.rate.kind}";q={each.rate.burst};w={each.rate.window_seconds}' for each in states]
    left = [f'"{each.rate.kind}";r={each.remaining};t={each.reset_seconds}' for each in states]
    for use in used_quotas():
        seconds = use.seconds_left
        window = "" if seconds is None else f";w={DAY_SECONDS}"
        policies.append(f'"{use.quota.name}";q={use.limit};qu="{use.quota.unit}"{window}')
        left.append(f'"{use.quota.name}";r={use.left}' + ("" if seconds is None else f";t={seconds}"))
    if policies:
        response.headers["RateLimit-Policy"] = ", ".join(policies)
        response.headers["RateLimit"] = ", ".join(left)
    return response


def _take_thread() -> None:
    if request.path.startswith(OPEN_PATHS):
        return
    owner = _owner()
    computing: Turns = current_app.extensions["turns"]
    computing.seen(owner)
    if caller().tenant in (None, TENANT):
        return
    turns: Turns = current_app.extensions["thread_turns"]
    if not turns.take(owner):
        raise _too_many("too many requests of this tenant are being answered")
    g.thread_of = owner


def _keep_thread_while_read(response: Response) -> Response:
    """The thread of an answer in pieces, such as an export, makes them after the end of the request."""
    if response.is_streamed and (owner := g.pop("thread_of", None)) is not None:
        response.response = _Held(response.response, current_app.extensions["thread_turns"], owner)
    return response


class _Held:
    """The pieces of an answer, which give the thread back after the last one, or when nobody reads on."""

    def __init__(self, pieces: Iterable[Any], turns: Turns, owner: str) -> None:
        self._pieces, self._turns, self._owner = pieces, turns, [owner]

    def __iter__(self) -> Iterator[Any]:
        yield from self._pieces
        self.close()

    def close(self) -> None:
        if close := getattr(self._pieces, "close", None):
            close()
        if self._owner:
            self._turns.give_back(self._owner.pop())


def _give_thread_back(_: object) -> None:
    owner = g.pop("thread_of", None)
    if owner is not None:
        turns: Turns = current_app.extensions["thread_turns"]
        turns.give_back(owner)


def _take_turn() -> None:
    if request.endpoint not in COMPUTING_ENDPOINTS or request.routing_exception is not None:
        return
    owner, turns = _owner(), current_app.extensions["turns"]
    if not turns.take(owner):
        raise _too_many(
            "too many previews, explanations and calendars are being computed for this key or address"
        )
    g.computing_for = owner, thread_time()


def _give_turn_back(_: object) -> None:
    found = g.pop("computing_for", None)
    if found is not None:
        owner, began = found
        turns: Turns = current_app.extensions["turns"]
        turns.give_back(owner, thread_time() - began)


def _owner() -> str:
    who = caller()
    if who.tenant not in (None, TENANT):
        return f"tenant {who.tenant}"
    return who.owner if who.name is not None else request.remote_addr or ""


def _too_many(what: str) -> HttpProblem:
    return HttpProblem(
        429,
        f"{what}; try again in a moment, a few at a time",
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    )
