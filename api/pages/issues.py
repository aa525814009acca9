"""What needs a person, in words for people: each reason of the verdict, and each stop switch that is on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from http import HTTPStatus

from flask import url_for

from scheduler_app.api.auth import PAGES
from scheduler_app.api.pages.formatting import Bar, counted, stacked_bars
from scheduler_app.api.pages.times import instant, short
from scheduler_app.domain.cause import TREND_PART, Cause, CauseKind, subject_shown
from scheduler_app.domain.heartbeat import OF_HEARTBEAT
from scheduler_app.domain.kill_switch import KillSwitch
from scheduler_app.domain.ledger import OF_LEDGER
from scheduler_app.domain.silence import Silence
from scheduler_app.health.status import StatusReason, remedy_of
from scheduler_app.store.stops import CorruptKillSwitch
from scheduler_app.usecases.deeds.failures import CauseReport

#: Parts of the picture of a cause: three hours, which is what it keeps.
TREND_PARTS = 36
TREND = (180.0, 36.0)
#: Tags that are named beside an issue.
MOST_TAGS = 6
_STATUS = re.compile(r"status (\d{3})")
#: How an issue of each kind begins; others say that something fails.
_MARKS = {
    "dead_letters": "Gave up",
    "schedules_in_error": "Broken since",
    "machinery": "Down since",
    "configuration": "To be set right",
    "late": "Late since",
    "stalled": "Without a next run since",
    "unserved": "Waiting since",
    "missed": "Missed since",
    "overrunning": "Running too long since",
    "not_completed": "Not done in time since",
    "no_success": "Without a success since",
    "key_expiring": "Ends soon since",
}


@dataclass(frozen=True, slots=True)
class Button:
    words: str
    link: str
    test: str = ""


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that needs somebody."""

    kind: str
    look: str
    """Its class in the stylesheet."""
    mark: str
    since: datetime | None
    title: str
    link: str
    text: str
    buttons: tuple[Button, ...]
    """The advised one first."""
    schedules: int = 0
    tags: tuple[str, ...] = ()
    failed: int = 0
    trend: tuple[Bar, ...] = ()
    silence: Silence | None = None


def issue_of(reason: StatusReason, now: datetime) -> Issue:
    """A reason of the verdict."""
    cause, words = reason.cause, _words(reason)
    title, text, look, buttons = words
    return Issue(
        kind=reason.kind,
        look=look,
        mark=_MARKS.get(reason.kind, "Failing since").removesuffix("" if reason.since else " since"),
        since=reason.since,
        title=title,
        link=buttons[0].link,
        text=text,
        buttons=buttons,
        schedules=reason.schedules,
        tags=tuple(sorted(reason.tags, key=lambda tag: (not tag.startswith("customer:"), tag))[:MOST_TAGS]),
        failed=max(cause.failed, cause.gave_up) if cause else 0,
        trend=tuple(trend_of(cause, now)) if cause else (),
        silence=reason.silence,
    )


def issue_of_failure(report: CauseReport, now: datetime) -> Issue:
    """A failure, whether it goes on or not."""
    cause, counts = report.cause, report.counts
    is_left = cause.key.kind is CauseKind.FAILING and not cause.is_living
    kind = "dead_letters" if is_left else cause.key.kind.value
    reason = StatusReason(
        *(kind, subject_shown(cause), cause.error, remedy_of(cause)),
        since=cause.since,
        cause=cause,
        schedules=cause.schedules.count,
        tags=cause.tags.names,
        counts=counts,
    )
    issue = issue_of(reason, now)
    if cause.dismissed_at:
        return replace(issue, look="skipped", mark="Dismissed", since=cause.dismissed_at)
    if cause.is_living:
        return issue
    return replace(issue, look="retry" if counts.dead else "ok", mark="Over since", since=cause.over_at)


def issue_of_switch(switch: KillSwitch | CorruptKillSwitch) -> Issue:
    since: datetime | None = None
    if isinstance(switch, KillSwitch):
        since = switch.since
        said = [f"“{switch.note}”" if switch.note else "", f"Turned on by {switch.by}." if switch.by else ""]
    else:
        said = [f"{switch.reason}."]
    return Issue(
        kind="kill_switch",
        look="held",
        mark="Stopped since" if since else "Stopped",
        since=since,
        title=f"The stop switch of {switch.target} is on",
        link=url_for(f"{PAGES}.stops"),
        text=" ".join(filter(None, [*said, "What falls due is held until it is off."])),
        buttons=(Button("Let it go on…", url_for(f"{PAGES}.stops")),),
    )


def trend_of(cause: Cause, now: datetime) -> Sequence[Bar]:
    """Failed attempts in each five minutes of the last three hours; none where there are none."""
    begin = now - TREND_PARTS * TREND_PART
    counts = [0] * TREND_PARTS
    for at, failed in cause.trend:
        if begin <= at <= now:
            counts[min(TREND_PARTS - 1, (at - begin) // TREND_PART)] += failed
    if not any(counts):
        return ()
    columns = [
        (instant(begin + number * TREND_PART), {"failed": count}) for number, count in enumerate(counts)
    ]
    return stacked_bars(columns, ["failed"], *TREND)


def failure_title(cause: Cause) -> str:
    """`crm answers “503 Service Unavailable”`, `crm does not answer: timed out`."""
    subject, failure = subject_shown(cause), cause.key.failure
    if cause.key.kind is not CauseKind.FAILING or failure == OF_LEDGER:
        return f"{subject}: {cause.error}"
    if failure == OF_HEARTBEAT:
        return f"The heartbeat {subject} was missed"
    if found := _STATUS.fullmatch(failure):
        status = int(found[1])
        known = next((f" {each.phrase}" for each in HTTPStatus if each == status), "")
        return f"{subject} answers “{status}{known}”"
    return f"Calls to {subject} fail: {(cause.error or failure).replace(': ', ', ', 1)}"


def _words(reason: StatusReason) -> tuple[str, str, str, tuple[Button, ...]]:
    """Title, text, look and buttons."""
    cause, counts = reason.cause, reason.counts
    if cause is None or reason.kind == CauseKind.MACHINERY:
        to = Button("See the machinery", url_for(f"{PAGES}.processes"))
        if reason.kind == "schedules_in_error":
            to = Button("See them", url_for(f"{PAGES}.schedules", state="error"))
        return reason.message, f"To do: {reason.remedy}.", "failed", (to,)
    look_into = Button("Look into it", failure_page(cause), "look-into")
    if cause.key.kind is not CauseKind.FAILING or cause.key.failure in (OF_HEARTBEAT, OF_LEDGER):
        return failure_title(cause), f"To do: {reason.remedy}.", "failed", (look_into,)
    send = Button(f"Send {counts.dead:,} again…", failure_page(cause, "again"), "send-again")
    sends = (look_into, send) if counts.dead else (look_into,)
    if not cause.is_living:
        is_are = "is" if counts.dead == 1 else "are"
        left = f"{counted(counts.dead, 'run')} gave up, and {is_are} not sent again."
        over = f"It is over; {left if counts.dead else 'nothing of it is left to be sent.'}"
        return failure_title(cause), over, "retry", sends
    next_try = f", the next one {short(counts.next_try)}" if counts.next_try else ""
    waits = f"{counted(counts.waiting, 'run')} will be tried again{next_try}." if counts.waiting else ""
    gave_up = f"{counted(counts.dead, 'run')} gave up." if counts.dead else ""
    text = " ".join(filter(None, (waits, gave_up))) or "Nothing waits, and nothing gave up so far."
    return failure_title(cause), text, "failed", sends


def failure_page(cause: Cause, part: str | None = None) -> str:
    return url_for(f"{PAGES}.failure", failure_id=cause.id, _anchor=part)
