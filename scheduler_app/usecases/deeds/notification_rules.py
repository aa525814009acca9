"""What people do with the rules of notifications, and with silences."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from scheduler_app.domain.action import Action
from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound
from scheduler_app.domain.ids import WholeId, check_new_name, name_of, tenant_of, whole_id
from scheduler_app.domain.notice_action import ChannelKind
from scheduler_app.domain.notification_rule import (
    MAX_RULES,
    NotificationChannel,
    NotificationHours,
    NotificationRule,
)
from scheduler_app.domain.silence import MAX_SILENCES, Silence
from scheduler_app.store import Store
from scheduler_app.store.notification_rules import CorruptNotificationRule
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.deeds.named import calendar_named
from scheduler_app.usecases.notices import Notices
from scheduler_app.usecases.stops import PutResult

log = get_logger(__name__)

Rule = NotificationRule | CorruptNotificationRule


@dataclass(frozen=True)
class NotificationRuleService:
    """`check_action` raises InvalidField for a receiver that this deployment does not reach."""

    store: Store
    check_action: Callable[[Action], None]
    new_secret: Callable[[], str]
    notices: Notices

    def of(self, tenant: str) -> Sequence[Rule]:
        """The tenant's, by name."""
        return self.store.notification_rules.of(tenant)

    def get(self, rule_id: WholeId) -> Rule:
        """Raises NotFound."""
        found = self.store.notification_rules.get(rule_id)
        if found is None:
            raise NotFound(f"there is no notification {name_of(rule_id)}")
        return found

    def put(self, asked: NotificationRule, now: datetime) -> tuple[NotificationRule, PutResult, bool]:
        """Sets it under its name; returns it as it is stored, what that did, and whether its signing secret
        is new. Raises InvalidField, and Conflict where there are too many."""
        asked = replace(asked, hours=self._hours(asked, now))
        found = self.store.notification_rules.get(asked.id)
        old = found if isinstance(found, NotificationRule) else None
        rule = replace(asked, to=tuple(self._channel(each, old) for each in asked.to))
        signing = old.signing if old is not None else asked.signing
        signs = any(each.kind is ChannelKind.WEBHOOK for each in rule.to)
        is_new = signs and signing is None
        rule = replace(rule, signing=Signing(self.new_secret(), now) if is_new else signing)
        if old is not None and old.says_the_same(rule) and not is_new:
            return old, "unchanged", False
        if found is None:
            check_new_name(rule.name)
            if len(self.of(rule.tenant)) >= MAX_RULES:
                raise Conflict(f"there are {MAX_RULES} notifications: delete some that nobody needs")
        created = self.store.notification_rules.put(rule)
        log.info("notification.set", message="A notification was set", notification=rule.id)
        return rule, "created" if created else "changed", is_new

    def _hours(self, asked: NotificationRule, now: datetime) -> NotificationHours | None:
        """With the calendar that they name. Raises InvalidField."""
        hours = asked.hours
        if hours is not None and hours.calendar is not None:
            own_id = whole_id(asked.tenant, hours.calendar.name)
            try:
                known = calendar_named(own_id, self.store)
            except InvalidField as error:
                raise InvalidField(f"hours/{error.field}", error.message) from None
            hours = replace(hours, calendar=replace(hours.calendar, known=known))
        if hours is not None:
            hours.check(now)
        return hours

    def delete(self, rule_id: WholeId, now: datetime) -> None:
        """Raises NotFound."""
        if not self.store.notification_rules.delete(rule_id):
            raise NotFound(f"there is no notification {name_of(rule_id)}")
        self.store.tellings.forget(rule_id, now)
        log.info("notification.deleted", message="A notification was deleted", notification=rule_id)

    def test(self, rule_id: WholeId, now: datetime) -> list[str]:
        """Sends one message to each of its channels; returns the ids of the messages. Raises NotFound, and
        Conflict for one that cannot be read."""
        rule = self.get(rule_id)
        if isinstance(rule, CorruptNotificationRule):
            raise Conflict(f"the notification {rule.name} cannot be read: {rule.reason}. Set it again")
        return self.notices.test(rule, secrets.token_hex(12), now)

    def _channel(self, asked: NotificationChannel, old: NotificationRule | None) -> NotificationChannel:
        """With the values that its masks stand for. Raises InvalidField."""
        channel = asked
        if asked.is_masked:
            known = old.to if old is not None else ()
            found = next((kept for each in known if (kept := asked.unmasked(each)) is not None), None)
            if found is None:
                raise InvalidField("to", "has masks that stand for nothing: give the whole URL")
            channel = found
        try:
            self.check_action(channel.trial())
        except InvalidField as error:
            name = "address" if channel.kind is ChannelKind.EMAIL else "url"
            raise InvalidField("to", f"{name} {error.message}") from None
        return channel


@dataclass(frozen=True)
class SilenceService:
    """What people do with silences."""

    store: Store

    def of(self, tenant: str) -> list[Silence]:
        """The tenant's, by name, those that ended within the last week too."""
        return self.store.silences.of(tenant)

    def get(self, silence_id: WholeId) -> Silence:
        """Raises NotFound."""
        for each in self.of(tenant_of(silence_id)):
            if each.id == silence_id:
                return each
        raise NotFound(f"there is no silence {name_of(silence_id)}")

    def put(self, silence: Silence, now: datetime) -> PutResult:
        """Sets it under its name; it holds for what is not told yet. Raises InvalidField, and Conflict where
        there are too many."""
        silence.check(now)
        known = self.of(silence.tenant)
        old = next((each for each in known if each.id == silence.id), None)
        if old is not None and replace(old, created_at=silence.created_at, by=silence.by) == silence:
            return "unchanged"
        if old is None:
            check_new_name(silence.name)
            if len(known) >= MAX_SILENCES:
                raise Conflict(f"there are {MAX_SILENCES} silences: delete some that are over")
        created = self.store.silences.put(silence)
        log.info("silence.set", message="A silence was set", silence=silence.id)
        return "created" if created else "changed"

    def delete(self, silence_id: WholeId) -> None:
        """What still fails is told from now on. Raises NotFound."""
        if not self.store.silences.delete(silence_id):
            raise NotFound(f"there is no silence {name_of(silence_id)}")
        log.info("silence.deleted", message="A silence was deleted", silence=silence_id)
