"""The messages that rules of notifications send: one for each change of a cause and each channel."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduler_app.domain.cause import Cause
from scheduler_app.domain.event import Event
from scheduler_app.domain.http_action import HttpAction
from scheduler_app.domain.notice_action import ChannelKind, NoticeAction
from scheduler_app.domain.notice_text import NoticeText, notice_text, trial_text
from scheduler_app.domain.notification import message_event
from scheduler_app.domain.notification_rule import (
    MOST_NAMED,
    TEST_TYPE,
    NotificationChannel,
    NotificationRule,
    Telling,
    cause_told,
    event_type,
    message_name,
    sentence,
    webhook,
)
from scheduler_app.domain.retry import RetryPolicy
from scheduler_app.store import Store


@dataclass(frozen=True)
class Notices:
    """Makes the messages of rules. `public_url` begins their links."""

    store: Store
    send: Callable[[Sequence[Event], datetime], None]
    retry: RetryPolicy
    public_url: str

    def test(self, rule: NotificationRule, token: str, now: datetime) -> list[str]:
        """Sends one to each channel; returns the ids of the messages."""
        said = trial_text(rule.name, self.public_url)
        data = {"text": said.subject, "notification": rule.name}
        made = self._made(rule, message_name(rule.id, token, "test"), TEST_TYPE, data, said, now)
        self.send(made, now)
        return [each.id for each in made]

    def make(self, rule: NotificationRule, now: datetime) -> None:
        """Makes the messages of what is noted as owed."""
        owed = self.store.tellings.owed(rule.id)
        together: dict[str, list[Telling]] = {}
        for each in owed:
            together.setdefault(each.message, []).append(each)
        named = {each.cause_id for group in together.values() for each in group[:MOST_NAMED]}
        causes = self.store.causes.get_many(named) if named else {}
        made: list[Event] = []
        for name, group in together.items():
            made += self._of_group(rule, name, group, causes)
        if made:
            self.send(made, now)
        self.store.tellings.made(owed)

    def _of_group(
        self, rule: NotificationRule, name: str, group: Sequence[Telling], causes: dict[str, Cause]
    ) -> list[Event]:
        found = [(each, causes[each.cause_id]) for each in group[:MOST_NAMED] if each.cause_id in causes]
        if not found:
            return []  # their causes are over for longer than causes are kept
        (first, cause), *others = found
        more = len(group) - 1
        data: dict[str, Any] = {
            "text": sentence(first.change, cause) + (f", and {more} more" if more else ""),
            "notification": rule.name,
            "failure": cause_told(cause, self.public_url),
        }
        if more:
            data |= {"more": more, "others": [cause_told(other, self.public_url) for _, other in others]}
        named = [each for _, each in found]
        said = notice_text(rule.name, first.change, named, more, self.public_url)
        return self._made(rule, name, event_type(first.change), data, said, first.told_at)

    def _made(
        self,
        rule: NotificationRule,
        name: str,
        kind: str,
        data: dict[str, Any],
        said: NoticeText,
        now: datetime,
    ) -> list[Event]:
        return [
            message_event(
                *(name, f"-on-notice-{number}", kind, _action(channel, kind, data, said, now), now),
                retry=self.retry,
                signing=rule.signing if channel.kind is ChannelKind.WEBHOOK else None,
            )
            for number, channel in enumerate(rule.to)
        ]


def _action(
    channel: NotificationChannel, kind: str, data: dict[str, Any], said: NoticeText, now: datetime
) -> HttpAction | NoticeAction:
    if channel.kind is ChannelKind.WEBHOOK:
        return webhook(channel, kind, now, data)
    return NoticeAction.to(channel.kind, channel.address, *said)
