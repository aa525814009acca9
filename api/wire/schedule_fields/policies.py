"""What becomes of a schedule's events where all is not well: its policies."""

from marshmallow import fields, validate

from scheduler_app.api.wire.schedule_fields.field import ScheduleField
from scheduler_app.domain.lateness import (
    DEFAULT_LATE_AFTER_SECONDS,
    DEFAULT_WINDOW_SECONDS,
    LEAST_SECONDS,
    MAX_SECONDS,
    CatchUp,
)

_SPAN = validate.Range(LEAST_SECONDS, MAX_SECONDS)
_CATCH_UP = tuple(each.value for each in CatchUp)

POLICIES = (
    ScheduleField(
        name="catch_up",
        meaning="Which occurrences are still sent that were missed: `all`; `latest`, the newest one alone;"
        " `none`. The others expire",
        default="`all`",
        input=fields.String(validate=validate.OneOf(_CATCH_UP)),
        output=fields.String(validate=validate.OneOf(_CATCH_UP)),
        read=CatchUp,
        shown=lambda it: it.schedule.lateness.catch_up.value,
        # A file of exports stays readable: most schedules have no policy of their own.
        exported=lambda it: _unless(it.schedule.lateness.catch_up.value, CatchUp.ALL.value),
        aliases="catchup misfire misfire_policy missed missed_runs missed_run_policy catch_up_policy",
    ),
    ScheduleField(
        name="catch_up_window_seconds",
        meaning="With `catch_up` `latest`: how late the newest one may still be sent. `all` means all,"
        " however late",
        default=f"{DEFAULT_WINDOW_SECONDS:g}",
        input=fields.Float(validate=_SPAN),
        output=fields.Float(),
        shown=lambda it: it.schedule.lateness.window_seconds,
        exported=lambda it: _unless(it.schedule.lateness.window_seconds, DEFAULT_WINDOW_SECONDS),
        aliases="catchup_window catch_up_window",
    ),
    ScheduleField(
        name="late_after_seconds",
        meaning="How late an occurrence must be to count as missed, for `catch_up`",
        default=f"{DEFAULT_LATE_AFTER_SECONDS:g}",
        input=fields.Float(validate=_SPAN),
        output=fields.Float(),
        shown=lambda it: it.schedule.lateness.late_after_seconds,
        exported=lambda it: _unless(it.schedule.lateness.late_after_seconds, DEFAULT_LATE_AFTER_SECONDS),
        aliases="late_after misfire_grace_time starting_deadline_seconds",
    ),
    ScheduleField(
        name="expire_after_seconds",
        meaning="How long after it was due an event is given up, its retries included; null for never",
        input=fields.Float(validate=_SPAN, allow_none=True),
        output=fields.Float(),
        shown=lambda it: it.schedule.lateness.expire_after_seconds,
        aliases="expire_after expires expires_after ttl deadline",
    ),
)


def _unless(value: object, default: object) -> object:
    return None if value == default else value
