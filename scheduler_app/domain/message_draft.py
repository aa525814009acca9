"""A message as a person or program asks for it."""

from dataclasses import dataclass, field, replace

from scheduler_app.domain.errors import InvalidField, masked_value
from scheduler_app.domain.http_action import MAX_HEADERS, BodyKind, RequestBody, http_action
from scheduler_app.domain.lateness import DEFAULT_LATENESS
from scheduler_app.domain.masking import MASK, MASKED_BODY
from scheduler_app.domain.message import DEFAULT_MESSAGE_METHOD, METADATA_PREFIX, Message, OwnParts
from scheduler_app.domain.schedule_draft import ScheduleDraft


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDraft(OwnParts):
    """A message as a person or program asks for it. Each value is valid by itself."""

    id: str | None = None
    """As its owner chose it; None: it is to be made."""
    metadata: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    draft: ScheduleDraft = field(default_factory=ScheduleDraft)
    """The request and how it is delivered, as for a schedule; its other fields are not used. Drafts of one
    request may share it."""
    body: RequestBody | None = field(default=None, repr=False)
    """In place of the draft's."""

    def message(self, tenant: str, *, max_retries: int) -> Message:
        """The tenant's new message, not yet signed; `max_retries` is for one that names none. Raises
        InvalidField."""
        return self.with_own_parts(self.common(tenant, max_retries=max_retries))

    def common(self, tenant: str, *, max_retries: int) -> Message:
        """The message without what is its own: what all drafts that share `draft` have in common. Raises
        InvalidField."""
        try:
            action = self.draft.new_action(tenant, default_method=DEFAULT_MESSAGE_METHOD)
        except InvalidField as error:
            raise InvalidField(_wire_name(error.field), error.message) from None
        return Message(
            action=action,
            queue=self.draft.queue_of(action),
            retry=self.draft.new_retry(max_retries),
            lateness=self.draft.late(DEFAULT_LATENESS),
            **self.draft.carried_over(),
        )

    def with_own_parts(self, common: Message) -> Message:
        """The whole message, from `common` of a draft that shares `draft`. Raises InvalidField."""
        action = http_action(common.action)
        body = self.body or action.body
        if body is not None and body.data == MASKED_BODY:
            raise masked_value(_wire_name(body.kind.value))
        headers = action.headers
        if self.metadata:
            if any(value == MASK for _, value in self.metadata):
                raise InvalidField(
                    "metadata", "has a masked value, and there is no value to keep: give the real one"
                )
            headers = (*headers, *((METADATA_PREFIX + name, value) for name, value in self.metadata))
            if len(headers) > MAX_HEADERS:
                raise InvalidField(
                    "metadata", f"and headers together must not have more than {MAX_HEADERS} names"
                )
        if body is not action.body or self.metadata:
            action = replace(action, headers=headers, body=body)
        return replace(common, action=action, **self.own_parts())


def _wire_name(field: str) -> str:
    """How a message calls a field of a schedule."""
    return "payload" if field == BodyKind.JSON.value else field
