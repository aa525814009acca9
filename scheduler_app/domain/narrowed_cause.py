"""A cause as it is shown to whoever may see some schedules alone."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from scheduler_app.domain.cause import Cause, CauseKind, Touched
from scheduler_app.domain.ids import schedule_of


def touched_among(cause: Cause, schedules: Sequence[str]) -> list[str]:
    """Those of these schedules that the cause touches and may be shown of: failures of a receiver that they
    share with others, and what is about one of them."""
    if cause.key.kind is not CauseKind.FAILING:
        return [each for each in schedules if each == cause.key.subject]
    named = frozenset(cause.schedules.names)
    hashed = bool(cause.schedules.others)
    return [each for each in schedules if each in named or (hashed and cause.schedules.has(each))]


def narrowed(
    cause: Cause, touched: Sequence[str], tags: Collection[str], *, waiting: int, dead: int
) -> Cause:
    """What these schedules and tags show of the cause. What its receiver does is the same for all: when it
    began to fail and when that ended. Counts and words of others are left out: how many events failed is
    known of those alone that wait or are dead letters."""
    own_tags = Touched(tuple(tag for tag in cause.tags.names if tag in tags))
    if cause.key.kind is not CauseKind.FAILING:
        return replace(cause, tags=own_tags)
    is_own = schedule_of(cause.event_id) in touched
    return replace(
        cause,
        schedules=Touched().with_names(touched),
        tags=own_tags,
        failed=waiting + dead,
        gave_up=dead,
        trend=(),
        error=cause.error if is_own else "",
        event_id=cause.event_id if is_own else "",
        resent=0,
        resent_at=None,
        dismissed_by="",
        note="",
    )
