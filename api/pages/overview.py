"""The overview: failures that need a person, runs of now and next, figures of a day, and processes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from flask import current_app, render_template

from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages.changes import changes_shown
from scheduler_app.api.pages.figure_charts import CHART, day_shown, hour_charts
from scheduler_app.api.pages.formatting import names_of, stacked_bars
from scheduler_app.api.pages.forms import NoFields, takes_query
from scheduler_app.api.pages.frame import blueprint, kill_switches_on
from scheduler_app.api.pages.issues import Issue, issue_of, issue_of_switch
from scheduler_app.api.pages.times import instant
from scheduler_app.api.scopes import may
from scheduler_app.api.services import caller, require_installation, services, tenant
from scheduler_app.clock import monotonic
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.forecast import EVERY_CALLBACK
from scheduler_app.domain.run_calendar import RunCalendar, RunOutcome
from scheduler_app.health.overview import MOST_COUNTED, Overview, look_over
from scheduler_app.health.processes import check_fleet, check_receivers, check_releases, check_settings
from scheduler_app.store.audit import AuditFilter
from scheduler_app.store.paging import PageRequest
from scheduler_app.usecases.questions.figures import SHOWN_STATES
from scheduler_app.usecases.questions.run_calendar import CalendarPeriod
from scheduler_app.usecases.questions.timed_figures import DAY
from scheduler_app.version import POLICY_LEVEL, __version__

ROWS = 5


@blueprint.get("/")
@takes_query(NoFields)
def overview(_: Loaded) -> str:
    assembly = services()
    now = assembly.now()
    figures = assembly.recent_figures.get(tenant(), now)
    whole = look_over(tenant(), assembly.store, assembly.publisher, now, coming=ROWS)
    issues = [issue_of(each, now) for each in whole.status.reasons]
    issues += [issue_of_switch(each) for each in kill_switches_on()]
    # Failures that last come before those that are over and left dead letters.
    issues.sort(key=lambda each: ("failed", "held", "retry").index(each.look))
    return render_template(
        "overview.html",
        whole=whole,
        issues=issues,
        in_short=_in_short(issues, whole),
        figures=figures,
        charts_of=hour_charts(figures),
        day=day_shown(now),
        changes=_changes(now),
        outcomes=[(state.value, figures.outcomes[state.value]) for state in SHOWN_STATES],
        most=MOST_COUNTED,
        size=CHART,
        names=names_of(whole.coming),
    )


def _in_short(issues: Sequence[Issue], whole: Overview) -> str:
    """What is behind the verdict, and how many schedules there are."""
    failing = sum(each.kind == "failing" for each in issues)
    stopped = sum(each.kind == "kill_switch" for each in issues)
    parts = [
        f"{failing} receiver{'s fail' if failing > 1 else ' fails'}" if failing else "",
        f"{stopped} stop switch{'es are' if stopped > 1 else ' is'} on" if stopped else "",
    ]
    said = " and ".join(filter(None, parts))
    active = whole.schedules.get("active", 0)
    many = f"{active:,}{'+' if active >= MOST_COUNTED else ''}"
    return f"{said}. " * bool(said) + f"{many} schedule{'s are' if active != 1 else ' is'} active."


CHANGES = 5
#: Changes are looked for so long among what the scheduler did by itself.
CHANGES_SECONDS = 0.1


def _changes(now: datetime) -> list[dict[str, Any]]:
    """The newest changes since yesterday, for those who may see the audit."""
    if not may(KeyScope.ADMIN):
        return []
    window = PageRequest(limit=CHANGES, since=now - DAY, seconds=CHANGES_SECONDS)
    which = AuditFilter(of_installation=caller().tenant is None, are_changes=True)
    return changes_shown(services().audit_questions.page(tenant(), window, which).rows)


#: The strip of what ran and comes: its times, its parts, and the rare runs that are named below it.
PAST, COMING, PART = timedelta(hours=1), timedelta(hours=2), timedelta(minutes=5)
STRIP = (360.0, 110.0)
RARE = 6
#: The strip is kept for this many times the seconds that it took to make, and for a minute at most.
KEPT_TIMES, KEPT_SECONDS = 20, 60.0
#: The outcomes as the strip shows them, from the bottom to the top.
_STRIP_KINDS = {
    RunOutcome.DONE: "done",
    RunOutcome.FAILED: "failed",
    RunOutcome.HELD: "held",
    RunOutcome.WAITING: "waiting",
    RunOutcome.TO_COME: "to come",
}


@dataclass
class _KeptCalendar:
    """The newest strip of each tenant, with the moment up to which it is shown."""

    found: dict[str, tuple[float, RunCalendar, datetime]] = field(default_factory=dict)


@blueprint.get("/overview/now-and-next")
@takes_query(NoFields)
def now_and_next(_: Loaded) -> str:
    """The part of the overview that is loaded after the rest of it."""
    found, now = _calendar()
    columns = [
        (instant(part.start), {word: part.counts[outcome] for outcome, word in _STRIP_KINDS.items()})
        for part in found.parts
    ]
    coming = [part for part in found.parts if part.start >= now - PART]
    busiest = max(coming, key=lambda part: part.counts[RunOutcome.TO_COME], default=None)
    rare = sorted(
        ((run.at, each) for each in found.rare for run in each.runs if run.at > now), key=lambda pair: pair[0]
    )
    width = STRIP[0] / max(1, len(found.parts))
    begin = found.parts[0].start
    return render_template(
        "now_and_next.html",
        bars=stacked_bars(columns, list(_STRIP_KINDS.values()), *STRIP),
        blackouts=[
            (
                max(0.0, (each.start - begin) / PART * width),
                (each.end - max(each.start, begin)) / PART * width,
            )
            for each in found.blackouts
        ],
        at_now=(now - begin) / PART * width,
        begin=begin,
        end=found.parts[-1].end,
        made_at=now,
        busiest=busiest,
        rare=rare[:RARE],
        notes=found.notes,
        size=STRIP,
    )


def _calendar() -> tuple[RunCalendar, datetime]:
    kept: _KeptCalendar = current_app.extensions.setdefault("now_and_next", _KeptCalendar())
    until, found, made_at = kept.found.get(tenant(), (0.0, None, None))
    began = monotonic()
    if found is None or made_at is None or began >= until:
        now = services().now()
        begin = datetime.fromtimestamp(
            (now - PAST).timestamp() // PART.total_seconds() * PART.total_seconds(), tz=now.tzinfo
        )
        period = CalendarPeriod(start=begin, end=begin + PAST + COMING, width=PART)
        # The first strip may be cut short, because a reader waits for it; those after it are read whole.
        found = services().run_calendars.read(tenant(), period, EVERY_CALLBACK, now, first=found is None)
        made_at, took = now, monotonic() - began
        kept.found[tenant()] = (began + min(took * KEPT_TIMES, KEPT_SECONDS), found, made_at)
    return found, made_at


ORIGINS = 5


@blueprint.get("/processes")
@takes_query(NoFields)
def processes(_: Loaded) -> str:
    require_installation()
    reported = services().processes
    nodes = reported.alive()
    checks = [
        *check_fleet(nodes),
        check_settings(nodes, reported.settings, __version__),
        check_receivers(nodes),
        check_releases(nodes, POLICY_LEVEL),
    ]
    return render_template("processes.html", nodes=nodes, checks=checks, most_origins=ORIGINS)
