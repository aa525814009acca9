"""Sets aside schedules whose documents are corrupt: each is in `error` by itself, with the reason."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scheduler_app.clock import clock
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.store.collection import Document, Documents
from scheduler_app.store.schedules.corrupt import CorruptSchedule
from scheduler_app.telemetry import get_logger, metrics

log = get_logger(__name__)


def set_schedule_aside(schedules: Documents, which: Document, reason: str, now: datetime) -> bool:
    """False when none matches `which`."""
    result = schedules.update_one(
        which,
        {
            "$set": {"state": ScheduleState.ERROR.value, "reason": reason[:1000], "updated_at": now},
            "$unset": {"next_run_at": "", "owner": "", "lease_until": ""},
        },
    )
    return result.matched_count == 1


def report_set_aside(schedule_id: str, reason: str) -> None:
    """Counts a schedule that was set aside, and logs it for the operator."""
    metrics.set_aside.inc()
    log.error(
        "schedule.set_aside",
        message="A schedule cannot be expanded and is in error; mend its rule and resume it",
        schedule_id=schedule_id,
        reason=reason,
    )


def set_aside_corrupt(schedules: Documents, row: Mapping[str, Any], found: CorruptSchedule) -> None:
    """Sets an unclaimed schedule aside, unless it was changed since it was read."""
    same = {name: {"$eq": row.get(name)} for name in ("state", "version", "revision")}
    if found.readable_elsewhere:
        log.error(
            "schedule.not_readable_here",
            message="A schedule of a newer release, or whose key SECRETS_KEY lacks, is left alone",
            schedule_id=str(found.schedule_id),
            reason=found.reason,
        )
    elif set_schedule_aside(schedules, {"_id": row["_id"]} | same, found.reason, clock.now()):
        report_set_aside(str(found.schedule_id), found.reason)
