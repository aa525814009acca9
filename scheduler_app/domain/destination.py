"""A destination: a named receiver, with what is sent to it, how, and how much of it; and what a person asks
for who creates or changes one.
"""

from base64 import b64encode
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from scheduler_app.domain.action import CALLBACKS, COMMANDS, check_queue, origin_of
from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.errors import InvalidField, masked_value
from scheduler_app.domain.http_action import (
    DEFAULT_METHOD,
    DEFAULT_METHOD_WITH_BODY,
    METHODS,
    HttpAction,
    with_kept_secrets,
)
from scheduler_app.domain.ids import WholeId, name_of, tenant_of
from scheduler_app.domain.masking import MASK, split_query
from scheduler_app.domain.message import DEFAULT_MESSAGE_METHOD as MESSAGE_METHOD
from scheduler_app.domain.message import Message
from scheduler_app.domain.resource_fields import NOT_GIVEN, NotGiven, given, given_fields
from scheduler_app.domain.retry import Codes, RetryDraft, RetryOverride
from scheduler_app.domain.schedule import Schedule

MAX_RATE = 10_000.0
LEAST_RATE = 0.001
MAX_BURST = 10_000
MAX_CONCURRENCY = 1_000
MAX_BREAKER_FAILURES = 1_000
MAX_OPEN_SECONDS = 86_400.0
LEAST_OPEN_SECONDS = 1.0


class AuthType(StrEnum):
    """How a request says who is calling (RFC 7617, RFC 6750)."""

    BASIC = "basic"
    BEARER = "bearer"


@dataclass(frozen=True, slots=True)
class Auth:
    """The credentials of an `Authorization` header; `secret` is the password, or the token."""

    type: AuthType
    secret: str = field(repr=False)
    username: str = ""

    def header(self) -> tuple[str, str]:
        """Returns the header's name and value."""
        if self.type is AuthType.BEARER:
            return "Authorization", f"Bearer {self.secret}"
        pair = f"{self.username}:{self.secret}".encode()
        return "Authorization", f"Basic {b64encode(pair).decode()}"


@dataclass(frozen=True, slots=True)
class Breaker:
    """How many failures in a row stop sending for `open_seconds`; then one probe at a time is sent."""

    failures: int
    open_seconds: float


#: What names a destination.
ScheduleOrMessage = TypeVar("ScheduleOrMessage", bound=Schedule | Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination(RetryOverride):
    """A named receiver as it is stored. None: the destination leaves that to each schedule.

    Its repr leaves out every part that may contain a secret.
    """

    id: WholeId
    """Whole (see `domain.ids`)."""
    url: str = field(repr=False)
    method: str | None = None
    """For those that give none."""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    auth: Auth | None = None
    allowed_methods: tuple[str, ...] = METHODS
    signing: Signing | None = None
    success: Codes | None = None
    timeout_seconds: float | None = None
    rate_per_second: float | None = None
    burst: int = 1
    """How many may start at one instant, after a time in which fewer did than the rate allows."""
    concurrency: int | None = None
    breaker: Breaker | None = None
    paused: bool = False
    queue: str | None = None
    """Which workers send what comes here, where the schedule or message names no queue of its own."""
    deleting: bool = False
    """A deletion runs, or was interrupted by a crash: nothing new may name it until it is changed."""
    version: int = 1
    created_at: datetime
    updated_at: datetime

    @property
    def name(self) -> str:
        """What its tenant calls it."""
        return name_of(self.id)

    @property
    def tenant(self) -> str:
        return tenant_of(self.id)

    @property
    def whose(self) -> str:
        return f"the destination {self.name}"

    @property
    def is_limited(self) -> bool:
        """Whether an attempt may have to wait for room."""
        return bool(self.rate_per_second or self.concurrency or self.breaker or self.paused)

    def queue_for(self, own: str) -> str:
        """The queue of an event that comes here; `own` is that of its schedule or message."""
        return own if own != CALLBACKS else self.queue or CALLBACKS

    def action(self, asked: HttpAction, *, default_method: str | None = None) -> HttpAction:
        """Returns the whole request of an action that names this destination; `default_method` where neither
        says which, by default GET, or POST with a body.

        The action's path and query follow the destination's, its headers replace those of the same name.
        Credentials are the destination's own. Raises InvalidField for a method that is not allowed here.
        """
        by_body = DEFAULT_METHOD_WITH_BODY if asked.body else DEFAULT_METHOD
        method = asked.method or self.method or default_method or by_body
        if method not in self.allowed_methods:
            raise InvalidField(
                "method",
                f"the destination {self.name} allows {', '.join(self.allowed_methods)}, and not {method}",
            )
        headers = {name.lower(): (name, value) for name, value in self.headers}
        headers |= {name.lower(): (name, value) for name, value in asked.headers}
        if self.auth:
            headers["authorization"] = self.auth.header()
        return replace(asked, url=joined(self.url, asked.url), method=method, headers=tuple(headers.values()))

    def applied_to(self, schedule: ScheduleOrMessage) -> ScheduleOrMessage:
        """Returns the schedule or message as it is delivered: what the destination says of delivery holds for
        all that name it. Raises InvalidField for a method that is not allowed here, TypeError for an action
        that names no destination."""
        if not isinstance(schedule.action, HttpAction):
            raise TypeError(f"an action of kind {schedule.action.kind} names no destination")
        return replace(
            schedule,
            action=self.action(schedule.action, default_method=_default_method(schedule)),
            retry=self.overridden(schedule.retry),
            success=self.success or schedule.success,
            timeout_seconds=self.timeout_seconds or schedule.timeout_seconds,
            signing=self.signing or schedule.signing,
        )


def _default_method(asking: Schedule | Message) -> str | None:
    return MESSAGE_METHOD if isinstance(asking, Message) else None


def joined(base: str, path: str) -> str:
    """Returns the URL of `path`, which begins with `/` or `?` or is empty, below a destination's URL, `base`:
    path follows path, query follows query."""
    if not path:
        return base
    stem, query = split_query(base)
    below, own_query = split_query(path)
    queries = [each[1:] for each in (query, own_query) if len(each) > 1]
    return (stem.rstrip("/") + below if below else stem) + ("?" + "&".join(queries) if queries else "")


_REQUEST_FIELDS = frozenset(("url", "headers", "auth", "signing"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationDraft(RetryDraft):
    """The fields that were given; the others are NOT_GIVEN, and None takes one away. The names are those of
    `Destination`."""

    url: str | NotGiven = field(default=NOT_GIVEN, repr=False)
    method: str | NotGiven | None = NOT_GIVEN
    headers: tuple[tuple[str, str], ...] | NotGiven = field(default=NOT_GIVEN, repr=False)
    auth: Auth | NotGiven | None = NOT_GIVEN
    allowed_methods: tuple[str, ...] | NotGiven = NOT_GIVEN
    signing: bool | NotGiven = NOT_GIVEN
    """Whether requests are signed; the secret is generated when the destination is stored."""
    success: Codes | NotGiven | None = NOT_GIVEN
    timeout_seconds: float | NotGiven | None = NOT_GIVEN
    rate_per_second: float | NotGiven | None = NOT_GIVEN
    burst: int | NotGiven = NOT_GIVEN
    concurrency: int | NotGiven | None = NOT_GIVEN
    breaker: Breaker | NotGiven | None = NOT_GIVEN
    paused: bool | NotGiven = NOT_GIVEN
    queue: str | NotGiven | None = NOT_GIVEN

    def destination(
        self, destination_id: WholeId, now: datetime, old: Destination | None = None
    ) -> Destination:
        """Returns the whole destination that the draft describes. `old` is what it replaces: masks stand for
        its values, its signing secret stays where signing is asked for. Raises InvalidField."""
        if isinstance(self.url, NotGiven):
            raise InvalidField("url", "is missing: give the http or https URL to call")
        blank = Destination(id=destination_id, url="", created_at=now, updated_at=now)
        if old is not None:
            blank = replace(blank, version=old.version + 1, created_at=old.created_at, signing=old.signing)
        made = self._applied(blank, old or blank)
        return replace(made, signing=made.signing if self.signing is True else None)

    def edit(self, old: Destination, now: datetime) -> Destination:
        """Returns the destination with these changes, `old` itself where nothing changes. Raises
        InvalidField."""
        made = self._applied(old, old)
        if self.signing is False:
            made = replace(made, signing=None)
        if made == old:
            return old
        return replace(made, version=old.version + 1, updated_at=now, deleting=False)

    def _applied(self, start: Destination, known: Destination) -> Destination:
        """`start` with what is given; masks stand for values of `known`."""
        asked = HttpAction(given(self.url, start.url), headers=given(self.headers, start.headers))
        kept = {"headers"} if isinstance(self.headers, NotGiven) and start.url else set()
        before = HttpAction(url=known.url, headers=known.headers)
        request = _with_kept_secrets(asked, kept, before)
        moved = origin_of(request.url) != origin_of(known.url)
        auth = self._auth(given(self.auth, start.auth), known, moved=moved)
        others = given_fields(self, (each.name for each in fields(self) if each.name not in _REQUEST_FIELDS))
        made = replace(start, url=request.url, headers=request.headers, auth=auth, **others)
        _check_destination(made, burst_given=self.burst is not NOT_GIVEN)
        return made

    def _auth(self, auth: Auth | None, known: Destination, *, moved: bool) -> Auth | None:
        kept = isinstance(self.auth, NotGiven)
        if auth is None or (auth.secret != MASK and not kept):
            return auth
        if kept and not moved:
            return auth
        what = "token" if auth.username == "" else "password"
        if moved and known.url:
            raise InvalidField(
                "auth",
                f"was given for {origin_of(known.url)}, and secrets are not sent to another origin: give its"
                f" {what} again, or leave it out (auth: null)",
            )
        if known.auth is None or (known.auth.type, known.auth.username) != (auth.type, auth.username):
            raise masked_value("auth", f"its {what}")
        return known.auth


def _with_kept_secrets(asked: HttpAction, kept: set[str], known: HttpAction) -> HttpAction:
    """`resolved`, whose errors name the field as destinations have it."""
    try:
        return with_kept_secrets(asked, kept, known, known)
    except InvalidField as error:
        name = "url" if error.field == "callback_url" else error.field
        raise InvalidField(name, error.message.replace(", body: null", "")) from None


def _check_destination(made: Destination, *, burst_given: bool) -> None:
    if made.method is not None and made.method not in made.allowed_methods:
        raise InvalidField("method", "is not one of allowed_methods")
    if made.queue == COMMANDS:
        raise InvalidField("queue", f"{COMMANDS} is for commands alone; take another")
    if made.queue is not None:
        check_queue(made.queue)
    if made.auth is not None and any(name.lower() == "authorization" for name, _ in made.headers):
        raise InvalidField("auth", "give auth, or a header Authorization, not both")
    if made.rate_per_second is None and burst_given and made.burst > 1:
        raise InvalidField("burst", "belongs to a rate: give rate_per_second, too")
    first, longest = made.backoff_seconds, made.backoff_max_seconds
    if first is not None and longest is not None and longest < first:
        raise InvalidField("retry_backoff_max_seconds", "must not be less than retry_backoff_seconds")
