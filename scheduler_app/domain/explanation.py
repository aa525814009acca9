"""Why a schedule fires at an instant, or does not: its recurrence, its state, and the event there is."""

from dataclasses import dataclass
from datetime import datetime

from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.recurrence import Reason, RecurrenceVerdict
from scheduler_app.domain.schedule import Pause, Schedule, ScheduleState
from scheduler_app.domain.states import UNSENT, State


@dataclass(frozen=True, slots=True)
class EventFacts:
    """What an explanation asks of the event at the instant."""

    revision: int
    state: State
    message: str
    """Of the last line of its history."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether a schedule fires, or fired, at an instant, and why not."""

    at: datetime
    fires: bool
    verdict: RecurrenceVerdict
    """Of the recurrence alone."""
    reasons: tuple[Reason, ...]
    """The first one first; empty where it fires."""
    warnings: tuple[str, ...]
    causes: tuple[Reason, ...] = ()
    """Why it fires; empty where it does not."""


def explain(
    schedule: Schedule, verdict: RecurrenceVerdict, at: datetime, event: EventFacts | None, now: datetime
) -> Explanation:
    """Why `schedule` fires at the aware instant `at`, or does not. `verdict` is that of its recurrence.

    `event` is the newest one of its rule at that instant, which goes before what the schedule says now:
    an edit changes no past.
    """
    warnings = _warnings(verdict, schedule, at, event, now)
    if event is not None:
        reasons = _of_event(schedule, at, event)
    else:
        reasons = (*verdict.reasons, *_of_schedule(schedule, at, now))
    return Explanation(at, not reasons, verdict, reasons, tuple(warnings), () if reasons else verdict.causes)


def _of_event(schedule: Schedule, at: datetime, event: EventFacts) -> tuple[Reason, ...]:
    if event.state in UNSENT:
        return (Reason(event.state.value, event.message or f"Its event is {event.state.value}."),)
    if event.state in (State.READY_QUEUE, State.RETRYING) and schedule.is_cancelled_by_edit(
        event.revision, at
    ):
        cut = shown_instant(schedule.revised_at)
        return (Reason("cut", f"Its event is being withdrawn: the schedule was changed at {cut}."),)
    return ()


def _of_schedule(schedule: Schedule, at: datetime, now: datetime) -> tuple[Reason, ...]:
    """What keeps a schedule from an occurrence that has no event."""
    cut = shown_instant(schedule.revised_at)
    if schedule.state is ScheduleState.DELETED and at > schedule.updated_at:
        return (Reason("deleted", f"The schedule was deleted at {shown_instant(schedule.updated_at)}."),)
    if at < schedule.created_at:
        created = shown_instant(schedule.created_at)
        return (Reason("created", f"The schedule was created later, at {created}."),)
    if schedule.state is ScheduleState.PAUSED and at > schedule.revised_at:
        # As far as the end of the pause is known now.
        ends = None if schedule.pause is None else schedule.pause.until
        return (Reason("paused", _paused(schedule, cut)),) if ends is None or at < ends else ()
    if schedule.state is ScheduleState.ERROR and at > now:
        return (Reason("error", f"The schedule is set aside: {schedule.reason or 'no reason is kept'}"),)
    if schedule.state is ScheduleState.FINISHED and at > schedule.revised_at and at > now:
        return (Reason("finished", "The schedule is finished: it has no occurrence any more."),)
    if at <= schedule.revised_at and schedule.revision > schedule.first_revision:
        return (
            Reason(
                "cut",
                f"The schedule was edited, paused or resumed at {cut}, which replaced its planned events from"
                " then on; of an earlier trigger only events are known, and there is none for this instant.",
            ),
        )
    return ()


def _paused(schedule: Schedule, since: str) -> str:
    pause = schedule.pause or Pause()
    note = f' (its note: "{pause.note}")' if pause.note else ""
    end = f" until {shown_instant(pause.until)}" if pause.until else ""
    return f"The schedule has been paused since {since}{end}, reason: {pause.reason}{note}; resume it."


def _warnings(
    verdict: RecurrenceVerdict, schedule: Schedule, at: datetime, event: EventFacts | None, now: datetime
) -> list[str]:
    found = []
    if not verdict.previous_searched:
        found.append("The occurrence before it was not searched for further: that takes too many steps.")
    if event is None and at <= now and verdict.fires and not _of_schedule(schedule, at, now):
        found.append(
            "There is no event of it: it was removed after the retention, or has not been expanded yet."
        )
    return found
