"""What a person asks for: a new destination, or changes to one."""

from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from scheduler_app.domain.destination import Auth, Breaker, Destination
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.http_action import HttpAction
from scheduler_app.domain.kept_secrets import resolved
from scheduler_app.domain.masking import MASK
from scheduler_app.domain.not_given import NOT_GIVEN, NotGiven
from scheduler_app.domain.origin import origin_of
from scheduler_app.domain.queues import COMMANDS, check_queue
from scheduler_app.domain.retry import Codes

_REQUEST = frozenset(("url", "headers", "auth", "signing"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationDraft:
    """The fields that were given; the others are NOT_GIVEN, and None takes one away. The names are those of
    `Destination`."""

    url: str | NotGiven = field(default=NOT_GIVEN, repr=False)
    method: str | NotGiven | None = NOT_GIVEN
    headers: tuple[tuple[str, str], ...] | NotGiven = field(default=NOT_GIVEN, repr=False)
    auth: Auth | NotGiven | None = NOT_GIVEN
    allowed_methods: tuple[str, ...] | NotGiven = NOT_GIVEN
    signing: bool | NotGiven = NOT_GIVEN
    """Whether requests are signed; the secret is generated when the destination is stored."""
    max_retries: int | NotGiven | None = NOT_GIVEN
    backoff_seconds: float | NotGiven | None = NOT_GIVEN
    backoff_max_seconds: float | NotGiven | None = NOT_GIVEN
    retry_codes: Codes | NotGiven | None = NOT_GIVEN
    success: Codes | NotGiven | None = NOT_GIVEN
    timeout_seconds: float | NotGiven | None = NOT_GIVEN
    rate_per_second: float | NotGiven | None = NOT_GIVEN
    burst: int | NotGiven = NOT_GIVEN
    concurrency: int | NotGiven | None = NOT_GIVEN
    breaker: Breaker | NotGiven | None = NOT_GIVEN
    paused: bool | NotGiven = NOT_GIVEN
    queue: str | NotGiven | None = NOT_GIVEN

    def destination(self, destination_id: str, now: datetime, old: Destination | None = None) -> Destination:
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
        asked = HttpAction(
            url=start.url if isinstance(self.url, NotGiven) else self.url,
            headers=start.headers if isinstance(self.headers, NotGiven) else self.headers,
        )
        kept = {"headers"} if isinstance(self.headers, NotGiven) and start.url else set()
        before = HttpAction(url=known.url, headers=known.headers)
        request = _for_destination(asked, kept, before)
        auth = start.auth if isinstance(self.auth, NotGiven) else self.auth
        auth = self._auth(auth, known, moved=origin_of(request.url) != origin_of(known.url))
        made = replace(start, url=request.url, headers=request.headers, auth=auth, **self._others())
        _check(made, burst_given=self.burst is not NOT_GIVEN)
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
            raise InvalidField(
                "auth", f"its {what} is masked, and there is no value to keep: give the real one"
            )
        return known.auth

    def _others(self) -> dict[str, Any]:
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _REQUEST}
        return {name: value for name, value in values.items() if value is not NOT_GIVEN}


def _for_destination(asked: HttpAction, kept: set[str], known: HttpAction) -> HttpAction:
    """`resolved`, whose errors name the field as destinations have it."""
    try:
        return resolved(asked, kept, known, known)
    except InvalidField as error:
        name = "url" if error.field == "callback_url" else error.field
        raise InvalidField(name, error.message.replace(", body: null", "")) from None


def _check(made: Destination, *, burst_given: bool) -> None:
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
