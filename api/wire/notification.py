"""Notifications and silences on the wire."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from marshmallow import ValidationError, post_load, validate, validates_schema

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import services
from scheduler_app.api.wire.field_types import ID, check_visible
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema, edit_result
from scheduler_app.api.wire.resource_fields import new_fields, output_fields, shows, view_of
from scheduler_app.api.wire.schedule import note_problem
from scheduler_app.domain.cause_match import EVERYTHING, CauseMatch
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.ids import WholeId, name_of
from scheduler_app.domain.mail_server import MAX_MAILBOX
from scheduler_app.domain.notice_action import ChannelKind
from scheduler_app.domain.notification_rule import (
    AFTER_SECONDS,
    HOURS_KINDS,
    USUAL,
    NotificationChannel,
    NotificationHours,
    NotificationRule,
    Told,
)
from scheduler_app.domain.resources.notifications import HOURS, MATCH, NOTIFICATION, SILENCE
from scheduler_app.domain.silence import Silence
from scheduler_app.store.notification_rules import CorruptNotificationRule

MAX_URL = 4_000


class MatchInput(InputSchema):
    """Which failures: all that is given must match, each by one of its values."""

    class Meta(InputSchema.Meta):
        include = new_fields(MATCH)

    @post_load
    def match(self, data: Loaded, **_: object) -> CauseMatch:
        return CauseMatch(
            tags=tuple(data.get("tags", ())),
            schedules=tuple(map(name_of, data.get("schedules", ()))),
            destinations=tuple(map(name_of, data.get("destinations", ()))),
        )


class HoursInput(InputSchema):
    """When a notification may ring: each occurrence begins such a time."""

    class Meta(InputSchema.Meta):
        include = new_fields(HOURS)


class ChannelInput(InputSchema):
    """One way to somebody: a `webhook` and an `apprise` have a `url`, an `email` has an `address`."""

    type = fields.String(required=True, validate=validate.OneOf([kind.value for kind in ChannelKind]))
    url = fields.String(
        "The http or https URL to call; of `apprise` the URL of a service, such as"
        " `slack://T1/B1/secret`, which is not shown again",
        validate=validate.Length(1, MAX_URL),
    )
    address = fields.String(
        "The mail address, as `ops@example.com`", validate=[validate.Length(1, MAX_MAILBOX), check_visible]
    )

    @validates_schema
    def check_address(self, data: Loaded, **_: object) -> None:
        wanted, other = ("address", "url") if data.get("type") == "email" else ("url", "address")
        if wanted not in data:
            raise ValidationError(f"is missing for the type {data.get('type')}", wanted)
        if other in data:
            raise ValidationError(f"is not for the type {data.get('type')}, which has {wanted}", other)
        if data.get("type") == ChannelKind.WEBHOOK:
            problems: dict[str, list[str]] = {}
            note_problem(problems, "url", services().guard.check_url, data["url"])
            if problems:
                raise ValidationError(problems)

    @post_load
    def channel(self, data: Loaded, **_: object) -> NotificationChannel:
        return NotificationChannel(ChannelKind(data["type"]), data.get("url") or data["address"])


class NotificationInput(InputSchema):
    """Which failures are told, when, and to whom."""

    class Meta(InputSchema.Meta):
        include = new_fields(
            NOTIFICATION,
            {
                "match": lambda: fields.Nested(MatchInput),
                "hours": lambda: fields.Nested(HoursInput),
                "channel": lambda: fields.Nested(ChannelInput),
            },
        )


def rule_of(rule_id: WholeId, given: Loaded, now: datetime) -> NotificationRule:
    """The rule that a body asks for. Raises InvalidField."""
    _check_name(rule_id)
    hours = given.get("hours")
    return NotificationRule(
        id=rule_id,
        to=tuple(dict.fromkeys(given["to"])),
        on=tuple(Told(each) for each in dict.fromkeys(given.get("on", USUAL))),
        match=given.get("match", EVERYTHING),
        after_seconds=given.get("after_seconds", AFTER_SECONDS),
        remind_seconds=given.get("remind_seconds"),
        hours=hours and _hours(hours, now),
        created_at=now,
    )


def _hours(given: Loaded, now: datetime) -> NotificationHours:
    try:
        return NotificationHours.of(
            {name: given[name] for name in HOURS_KINDS if name in given},
            timedelta(seconds=given["duration_seconds"]),
            now,
            given.get("timezone", "UTC"),
            given.get("calendar"),
        )
    except InvalidField as error:
        inner = error.field if error.field in given else ""
        raise InvalidField(f"hours/{inner}" if inner else "hours", error.message) from None


def _check_name(resource_id: WholeId) -> None:
    if not ID.match(name_of(resource_id)):
        raise InvalidField("name", "the path's must be 1 to 64 letters, digits and hyphens")


class MatchOutput(OmitNone):
    class Meta(OmitNone.Meta):
        include = output_fields(MATCH)


class HoursOutput(OmitNone):
    class Meta(OmitNone.Meta):
        include = output_fields(HOURS)


class ChannelOutput(OmitNone):
    type = fields.String(required=True)
    url = fields.String("The values of its query are masked; of `apprise` all but the scheme is")
    address = fields.String("The mail address")


_OUTPUTS = {
    "match": lambda: fields.Nested(MatchOutput),
    "hours": lambda: fields.Nested(HoursOutput),
    "channel": lambda: fields.Nested(ChannelOutput),
}


class NotificationOutput(OmitNone):
    class Meta(OmitNone.Meta):
        include = output_fields(NOTIFICATION, _OUTPUTS)


class NotificationEdited(NotificationOutput):
    result = edit_result()


class NotificationList(OutputSchema):
    notifications = fields.List(NotificationOutput, required=True)


class NotificationTested(OutputSchema):
    message_ids = fields.List(
        fields.String(), "The messages that were made, one for each channel", required=True
    )


def match_shown(match: CauseMatch) -> View | None:
    """None where it is about everything."""
    given = {"tags": match.tags, "schedules": match.schedules, "destinations": match.destinations}
    return {name: list(values) for name, values in given.items() if values} or None


def _hours_shown(hours: NotificationHours) -> View:
    written = {name: hours.trigger.written.get(name) for name in HOURS_KINDS}
    return {
        **{name: value for name, value in written.items() if value is not None},
        "timezone": hours.trigger.timezone,
        **({} if hours.calendar is None else {"calendar": hours.calendar.name}),
        "duration_seconds": hours.duration.total_seconds(),
    }


def _channels_shown(channels: Iterable[NotificationChannel]) -> list[View]:
    return [
        {"type": each.kind.value, "address" if each.kind is ChannelKind.EMAIL else "url": each.shown}
        for each in channels
    ]


_SHOWN = shows(
    NOTIFICATION,
    {
        "on": lambda rule: [each.value for each in rule.on],
        "match": lambda rule: match_shown(rule.match),
        "hours": lambda rule: rule.hours and _hours_shown(rule.hours),
        "to": lambda rule: _channels_shown(rule.to),
    },
)


def notification_shown(found: NotificationRule | CorruptNotificationRule) -> View:
    """A rule in answers, its secrets masked."""
    if isinstance(found, CorruptNotificationRule):
        return {"name": found.name, "corrupt": found.reason}
    return view_of(_SHOWN, found)


class SilenceInput(InputSchema):
    """Which failures are not told, until when, and why."""

    class Meta(InputSchema.Meta):
        include = new_fields(SILENCE, {"match": lambda: fields.Nested(MatchInput)})


def silence_of(silence_id: WholeId, given: Loaded, now: datetime, by: str) -> Silence:
    """The silence that a body asks for. Raises InvalidField."""
    _check_name(silence_id)
    match = given.get("match", EVERYTHING)
    return Silence(
        id=silence_id, match=match, until=given["until"], reason=given["reason"], created_at=now, by=by
    )


class SilenceOutput(OmitNone):
    class Meta(OmitNone.Meta):
        include = output_fields(SILENCE, _OUTPUTS)


class SilenceEdited(SilenceOutput):
    result = edit_result()


class SilenceList(OutputSchema):
    silences = fields.List(SilenceOutput, required=True)


_SILENCE_SHOWN: dict[str, Any] = shows(
    SILENCE, {"match": lambda silence: match_shown(silence.match), "by": lambda silence: silence.by or None}
)


def silence_shown(silence: Silence) -> View:
    """A silence in answers."""
    return view_of(_SILENCE_SHOWN, silence)
