"""The row of notices in the registry of actions, and a notice as MongoDB keeps it: `{type, channel, receiver,
address, subject, text}`. Secret are the last three.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

from scheduler_app.actions.http.guard import check_reachable, guard_of
from scheduler_app.actions.kind import ActionKind, Document, Executor
from scheduler_app.config import Settings
from scheduler_app.domain.action import COMMANDS
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.notice_action import (
    MAX_APPRISE_URL,
    NOTICE,
    SELF_HOSTED,
    ChannelKind,
    NoticeAction,
    apprise_service,
    check_mailbox,
)
from scheduler_app.domain.stored_fields import one_of, text

_SECRET = ("address", "subject", "text")
_CHANNELS = (ChannelKind.EMAIL.value, ChannelKind.APPRISE.value)
_NO_SERVER = (
    "this deployment has no mail server: let the operator set SMTP_URL for the API, the workers and the"
    " witness, as smtps://user:password@host?from=alerts@example.com"
)


class NoticeKind(ActionKind[NoticeAction]):
    """A text for people. Its isolation key is `email`, or the service with a digest of who is meant there."""

    name = NOTICE
    without_secrets: ClassVar[Document] = {
        "type": NOTICE,
        "channel": "$action.channel",
        "receiver": "$action.receiver",
        **dict.fromkeys(_SECRET, ""),
    }
    not_for_beats = _SECRET
    in_their_place: ClassVar[Document] = dict.fromkeys(_SECRET, "")

    def fields(self) -> None:
        """Nobody can ask for one: rules of notifications make them."""
        return

    def to_document(self, action: NoticeAction) -> Document:
        secret = {name: getattr(action, name) for name in _SECRET}
        return {"type": NOTICE, "channel": action.channel.value, "receiver": action.receiver, **secret}

    def from_document(self, stored: Mapping[str, Any]) -> NoticeAction:
        return NoticeAction(
            channel=ChannelKind(one_of(stored.get("channel"), "action.channel", _CHANNELS)),
            receiver=text(stored.get("receiver"), "action.receiver"),
            **{name: text(stored.get(name), f"action.{name}") for name in _SECRET},
        )

    def split(self, stored: Document) -> tuple[Document, Document]:
        return stored | dict.fromkeys(_SECRET), {name: stored[name] for name in _SECRET}

    def join(self, stored: Document, secrets: Mapping[str, Any]) -> Document:
        return stored | {name: secrets.get(name) for name in _SECRET}

    def checker(self, settings: Settings) -> Callable[[NoticeAction], None]:
        """What is returned raises InvalidField("address") for mail, and InvalidField("url") for Apprise."""
        guard = guard_of(settings)

        def check(action: NoticeAction) -> None:
            if action.channel is ChannelKind.EMAIL:
                check_mailbox(action.address)
                if not settings.smtp_url:
                    raise InvalidField("address", _NO_SERVER)
                return
            if len(action.address) > MAX_APPRISE_URL:
                raise InvalidField("url", f"must not exceed {MAX_APPRISE_URL} characters")
            if apprise_service(action.address) in SELF_HOSTED:
                try:
                    check_reachable(f"https://{urlsplit(action.address).netloc}/", guard)
                except ValueError:
                    raise InvalidField("url", "names no host") from None
                except InvalidField as error:
                    raise InvalidField("url", error.message) from None

        return check

    def is_served(self, settings: Settings, queues: Collection[str]) -> bool:
        return COMMANDS not in queues

    def executor(self, settings: Settings, ready: Callable[[], None]) -> Executor:
        from scheduler_app.actions.notice.executor import NoticeExecutor

        return NoticeExecutor(settings, ready)
