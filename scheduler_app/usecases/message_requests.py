"""What the messages of one request have in common, made and checked once."""

from collections.abc import Callable
from typing import NamedTuple

from scheduler_app.domain.action import Action
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.draft import Draft
from scheduler_app.domain.message import DEFAULT_METHOD, Message, MessageDraft
from scheduler_app.store import Store
from scheduler_app.usecases.named_destination import Known, check_named, check_notified


class Common(NamedTuple):
    """What messages have in common that share a draft's request."""

    message: Message
    """Without what is each message's own."""
    origin: str
    queue: str
    """The one that their events are made in."""


class MessageRequest:
    """One request for messages, of one tenant. It keeps what it has read and checked for the last of them."""

    def __init__(
        self, store: Store, tenant: str, *, max_retries: int, check_action: Callable[[Action], None]
    ) -> None:
        """`max_retries` is for messages that name none. `check_action` raises InvalidField for a request that
        must not be made."""
        self.known: Known = {}
        self._store = store
        self._tenant = tenant
        self._max_retries = max_retries
        self._check_action = check_action
        self._last: tuple[Draft, Common] | None = None

    def common(self, draft: MessageDraft) -> Common:
        """What the draft's message has in common with all that share `draft.draft`. Raises InvalidField."""
        if self._last is None or self._last[0] is not draft.draft:
            self._last = draft.draft, self._checked(draft)
        return self._last[1]

    def _checked(self, draft: MessageDraft) -> Common:
        common = draft.common(max_retries=self._max_retries, tenant=self._tenant)
        action = common.action
        self._check_action(action)
        check_named(self._store, action, self.known, default_method=DEFAULT_METHOD)
        check_notified(self._store, common, tenant=self._tenant, known=self.known)
        named = self.known.get(action.destination or "")
        queue = named.queue_for(common.queue) if isinstance(named, Destination) else common.queue
        return Common(common, action.isolation_key, queue)
