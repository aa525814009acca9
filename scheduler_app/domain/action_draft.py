"""What a person asks to be done: an action of a schedule or message, its retries, its workers."""

from dataclasses import dataclass, field, replace

from scheduler_app.domain.action import Action
from scheduler_app.domain.command_action import COMMAND
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.http_action import DEFAULT_METHOD, DEFAULT_METHOD_WITH_BODY, Body, HttpAction
from scheduler_app.domain.kept_secrets import resolved
from scheduler_app.domain.not_given import NOT_GIVEN, NotGiven, given
from scheduler_app.domain.queues import CALLBACKS, COMMANDS, check_queue
from scheduler_app.domain.retry import Codes, RetryPolicy
from scheduler_app.domain.schedule import CarriedOver
from scheduler_app.domain.tenants import whole_id


@dataclass(frozen=True, slots=True)
class ActionDraft(CarriedOver):
    """The part of a `Draft` that says what is sent, and how."""

    url: str | NotGiven = field(default=NOT_GIVEN, repr=False)
    destination: str | NotGiven | None = NOT_GIVEN
    """The name of a destination of the schedule's tenant, in place of `url`."""
    path: str | NotGiven = field(default=NOT_GIVEN, repr=False)
    """The path and query below the destination's URL."""
    method: str | NotGiven = NOT_GIVEN
    headers: tuple[tuple[str, str], ...] | NotGiven = field(default=NOT_GIVEN, repr=False)
    body: Body | NotGiven | None = field(default=NOT_GIVEN, repr=False)
    action: Action | NotGiven = NOT_GIVEN
    """A whole action of another kind than `http`, whose fields stand in the draft itself."""
    sealed: str | NotGiven = field(default=NOT_GIVEN, repr=False)
    """The secrets of an exported schedule, which its masks stand for; the key opens it."""
    known: HttpAction | NotGiven = field(default=NOT_GIVEN, repr=False)
    """What was in `sealed`."""
    max_retries: int | NotGiven = NOT_GIVEN
    backoff_seconds: float | NotGiven = NOT_GIVEN
    backoff_max_seconds: float | NotGiven = NOT_GIVEN
    retry_codes: Codes | NotGiven = NOT_GIVEN
    queue: str | NotGiven = NOT_GIVEN
    """Which workers its events are for; commands have a queue of their own."""

    def new_action(self, *, default_method: str, tenant: str) -> HttpAction:
        """The request of something new; a destination that it names is `tenant`'s. Raises InvalidField where
        a mask stands for nothing."""
        return self._http_action(HttpAction(url="", method=default_method), tenant)

    def new_retry(self, max_retries: int) -> RetryPolicy:
        """The retry policy of something new; `max_retries` is for a draft that names none. Raises
        InvalidField."""
        return self._retry(self._default_retry(max_retries))

    def _action(self, old: Action | None, tenant: str) -> Action:
        """The new action; `old` is the schedule's, None for a new schedule."""
        http = (self.url, self.destination, self.path, self.method, self.headers, self.body)
        if self.action is not NOT_GIVEN:
            if any(value is not NOT_GIVEN for value in http):
                raise InvalidField("action", "give action, or callback_url and what belongs to it, not both")
            return self.action.unmasked(old)
        if old is None and self.url is NOT_GIVEN and given(self.destination, None) is None:
            raise InvalidField("callback_url", "is missing: give it, the name of a destination, or an action")
        if old is not None and not isinstance(old, HttpAction) and all(value is NOT_GIVEN for value in http):
            return old
        return self._http_action(old if isinstance(old, HttpAction) else self._new_http_action(), tenant)

    def new_queue(self, action: Action) -> str:
        """The queue of a new deliverable. Raises InvalidField."""
        return self._queue(action, CALLBACKS)

    def _queue(self, action: Action, old: str) -> str:
        """The new queue; `old` is the schedule's."""
        if action.kind == COMMAND:
            if self.queue is NOT_GIVEN or self.queue == COMMANDS:
                return COMMANDS
            raise InvalidField("queue", f"of a command is always {COMMANDS}: leave it out")
        queue = given(self.queue, CALLBACKS if old == COMMANDS else old)
        if queue == COMMANDS:
            raise InvalidField("queue", f"{COMMANDS} is for commands alone; take another")
        check_queue(queue)
        return queue

    def _new_http_action(self) -> HttpAction:
        method = DEFAULT_METHOD_WITH_BODY if given(self.body, None) else DEFAULT_METHOD
        return HttpAction(url="", method=method)

    def _http_action(self, old: HttpAction, tenant: str) -> HttpAction:
        destination, url = self._receiver(old, tenant)
        method = old.method
        if destination is not None and old.destination is None:
            method = ""  # the destination's, unless this says which
        elif destination is None and not method:
            method = DEFAULT_METHOD_WITH_BODY if given(self.body, old.body) else DEFAULT_METHOD
        asked = HttpAction(
            url=url,
            destination=destination,
            method=given(self.method, method),
            headers=given(self.headers, old.headers),
            body=given(self.body, old.body),
        )
        kept = {
            name
            for name, value in (("headers", self.headers), ("body", self.body))
            if value is NOT_GIVEN and old.is_whole
        }
        return resolved(asked, kept, old, given(self.known, old))

    def _receiver(self, old: HttpAction, tenant: str) -> tuple[str | None, str]:
        """The destination's id and the path below it, or None and the URL. Raises InvalidField."""
        name = given(self.destination, None)
        if self.url is not NOT_GIVEN:
            if name is not None or self.path is not NOT_GIVEN:
                raise InvalidField(
                    "callback_url" if name is not None else "path",
                    "give callback_url, or destination and path, not both",
                )
            return None, self.url
        if self.destination is NOT_GIVEN:
            if self.path is not NOT_GIVEN and old.destination is None:
                raise InvalidField("path", "is below a destination: give destination, too")
            return old.destination, given(self.path, old.url)
        if name is None:
            if old.destination is not None or not old.url:
                raise InvalidField("destination", "give another one, or callback_url in its place")
            return None, old.url
        destination = whole_id(tenant, name)
        return destination, given(self.path, old.url if old.destination == destination else "")

    def _default_retry(self, max_retries: int) -> RetryPolicy:
        """What a new schedule has for what it does not give: of the two delays, neither contradicts the one
        that is given."""
        policy = RetryPolicy(max_retries=max_retries)
        first, longest = policy.backoff_seconds, policy.backoff_max_seconds
        return replace(
            policy,
            backoff_seconds=min(first, given(self.backoff_max_seconds, first)),
            backoff_max_seconds=max(longest, given(self.backoff_seconds, longest)),
        )

    def _retry(self, old: RetryPolicy) -> RetryPolicy:
        policy = RetryPolicy(
            max_retries=given(self.max_retries, old.max_retries),
            backoff_seconds=given(self.backoff_seconds, old.backoff_seconds),
            backoff_max_seconds=given(self.backoff_max_seconds, old.backoff_max_seconds),
            codes=given(self.retry_codes, old.codes),
        )
        if policy.backoff_max_seconds < policy.backoff_seconds:
            raise InvalidField("retry_backoff_max_seconds", "must not be less than retry_backoff_seconds")
        return policy
