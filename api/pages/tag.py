"""One customer, team or other tag: what of it fails, and what each of its schedules did day by day."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from flask import render_template
from marshmallow import validate

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages.destination_picker import health_words
from scheduler_app.api.pages.forms import takes_query
from scheduler_app.api.pages.frame import blueprint
from scheduler_app.api.pages.issues import failure_page, failure_title
from scheduler_app.api.pages.times import viewer_zone
from scheduler_app.api.scopes import may
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.schedule import schedule_shown
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.audit import AuditLine
from scheduler_app.domain.cause import CauseState
from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.recurrence.zones import instant_at, local_in
from scheduler_app.domain.schedule import TICK, Schedule, ScheduleState
from scheduler_app.domain.states import FINAL, State
from scheduler_app.store.causes import CauseListFilter
from scheduler_app.store.events.figures import EventSummary
from scheduler_app.store.paging import PageRequest

#: Schedules in the table, and the runs that are read for it.
MOST_SCHEDULES = 50
MOST_RUNS = 10_000
#: Days before today and after it.
DAYS_BEFORE, DAYS_AFTER = 6, 2
MOST_FAILURES = 10
MOST_RECEIVERS = 6
MOST_CHANGES = 6
#: Runs of a day that are counted by a rule which cannot be counted at once.
MOST_COUNTED = 1_000
#: What a tag's first part is called.
_KINDS = {"customer": "Customer", "team": "Team"}


class TagQuery(InputSchema):
    tag = fields.String(required=True, validate=validate.Length(1, 64))


@dataclass(slots=True)
class DayOfSchedule:
    """What a schedule did on a day, and will do."""

    states: Counter[State] = field(default_factory=Counter)
    tried_again: int = 0
    last: EventSummary | None = None
    """The last one that failed, or else the last one."""
    coming: int = 0

    @property
    def ran(self) -> int:
        return self.states.total()

    @property
    def look(self) -> tuple[str, str]:
        """A class of the stylesheet, and the words."""
        if failed := self.states[State.ERROR]:
            return "failed", f"{failed:,} of {self.ran:,} failed"
        if any(state not in FINAL for state in self.states):
            return "running", "under way"
        if self.states[State.COMPLETED]:
            return ("retry", "Done after another try") if self.tried_again else ("ok", "Done")
        return ("skipped", "Did not run") if self.ran else ("next", "To come")


@blueprint.get("/tags", endpoint="tag_page")
@takes_query(TagQuery)
def tag_page(query: Loaded) -> str:
    assembly, tag, zone = services(), query["tag"], viewer_zone()
    now = assembly.now()
    today = local_in(now, zone).date()
    days = [today + timedelta(days=number) for number in range(-DAYS_BEFORE, DAYS_AFTER + 1)]
    page = assembly.schedules.page(tenant(), PageRequest(limit=MOST_SCHEDULES), order="newest", tag=tag)
    schedules = [each for each in page.rows if isinstance(each, Schedule)]
    runs = assembly.event_figures.newest(
        tenant(), _midnight(days[0], zone), now, most=MOST_RUNS, schedule_ids=[each.id for each in schedules]
    )
    table = _table(runs, zone)
    for each in schedules:
        _add_coming(table[each.id], each, now, days, zone)
    failing = assembly.failures.page(
        tenant(), PageRequest(limit=MOST_FAILURES), CauseListFilter(states=(CauseState.OPEN,), tag=tag)
    )
    rows = sorted(schedules, key=lambda each: (not _failed_last(each), each.name))
    kind, _, name = tag.rpartition(":")
    return render_template(
        "tag.html",
        tag=tag,
        kind=_KINDS.get(kind, kind or "Tag"),
        name=name,
        days=days,
        today=today,
        near=days[DAYS_BEFORE - 2 : DAYS_BEFORE + 2],
        rows=[(schedule_shown(each, now), table[each.id]) for each in rows],
        more=page.next is not None,
        failing=sum(map(_failed_last, schedules)),
        failures=[
            (failure_title(each.cause), failure_page(each.cause), each.cause.since) for each in failing.rows
        ],
        wrong=[
            (each, last)
            for each in rows
            if _failed_last(each) and (last := _last_failure(table[each.id])) is not None
        ],
        cut=len(runs) == MOST_RUNS,
        receivers=_receivers(schedules, now),
        changes=_changes(schedules),
        names={each.id: each.name for each in schedules},
        next_day=timedelta(days=1),
        zone=zone,
        deletion=assembly.deletions.at_work(tenant(), tag),
        may_delete=may(KeyScope.ADMIN),
    )


def _table(runs: Sequence[EventSummary], zone: str) -> defaultdict[str, defaultdict[date, DayOfSchedule]]:
    """By schedule and day; the runs come newest first."""
    found: defaultdict[str, defaultdict[date, DayOfSchedule]] = defaultdict(
        lambda: defaultdict(DayOfSchedule)
    )
    for run in runs:
        if run.was_withdrawn:
            continue
        day = found[run.schedule_id][local_in(run.run_time, zone).date()]
        day.states[run.state] += 1
        day.tried_again += run.state is State.COMPLETED and run.tries > 1
        if day.last is None or (run.state is State.ERROR and day.last.state is not State.ERROR):
            day.last = run
    return found


def _add_coming(
    table: defaultdict[date, DayOfSchedule],
    schedule: Schedule,
    now: datetime,
    days: Sequence[date],
    zone: str,
) -> None:
    if schedule.state is not ScheduleState.ACTIVE:
        return
    for day in days[DAYS_BEFORE:]:
        since = max(now + TICK, _midnight(day, zone))
        until = _midnight(day + timedelta(days=1), zone)
        try:
            rule = schedule.recurrence()
            if isinstance(rule, Recurrence) and schedule.calendar is None:
                count = rule.count(since, until)
            else:
                count = len(rule.between(since, until, limit=MOST_COUNTED))
        except InvalidRecurrence:
            continue  # the page of the schedule says why
        if count:
            table[day].coming += count


def _failed_last(schedule: Schedule) -> bool:
    return schedule.last_run is not None and schedule.last_run.outcome == State.ERROR


def _last_failure(days: defaultdict[date, DayOfSchedule]) -> EventSummary | None:
    """The last run of the days, if it failed."""
    ran = [day.last for day in days.values() if day.last is not None]
    last = max(ran, key=lambda run: run.run_time, default=None)
    return last if last is not None and last.state is State.ERROR else None


def _receivers(schedules: Sequence[Schedule], now: datetime) -> list[View]:
    """The destinations that they name, with how they are."""
    asked = services()
    named = dict.fromkeys(
        each.action.destination for each in schedules if each.action.destination is not None
    )
    known = asked.destination_questions.sound(list(named)[:MOST_RECEIVERS])
    health = asked.destination_questions.health(tenant(), known, now)
    return [{"name": name_of(each.id), "health": health_words(health[each.id])} for each in known]


def _changes(schedules: Sequence[Schedule]) -> list[AuditLine]:
    """The newest edits of them."""
    if not schedules:
        return []
    window = PageRequest(limit=MOST_CHANGES)
    return services().audit.edits_of_schedules(window, [each.id for each in schedules]).rows


def _midnight(day: date, zone: str) -> datetime:
    return instant_at(datetime(day.year, day.month, day.day), zone)  # noqa: DTZ001 (a local time)
