"""One schedule: its rule, its next occurrences, its history as chart and table, its request, its edits."""

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

from flask import render_template, url_for
from marshmallow import ValidationError, validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api.auth import PAGES
from scheduler_app.api.edits import revert
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages.formatting import Dot, on_log_scale, state_words
from scheduler_app.api.pages.forms import ActionResultQuery, NoFields, takes_form, takes_query
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.pages.policy_words import (
    answer_words,
    choice_words,
    late_words,
    overlap_words,
    retry_words,
    start_words,
    told_words,
)
from scheduler_app.api.pages.schedule_form import texts_of, with_defaults
from scheduler_app.api.pages.times import precise
from scheduler_app.api.pages.when import when_text
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.blackout import note_blackouts
from scheduler_app.api.wire.field_types import Cursor, LocalOrInstant
from scheduler_app.api.wire.preview import Jitter, PreviewQuery, WhyQuery, explanation_shown, preview_shown
from scheduler_app.api.wire.schedule import schedule_shown
from scheduler_app.api.wire.schedule_fields import BODY_FIELDS
from scheduler_app.domain.errors import InvalidField, InvalidRecurrence
from scheduler_app.domain.ids import WholeId, name_of
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.states import FINAL, LIVING, Kind, State
from scheduler_app.store.events.events import EventRecord
from scheduler_app.store.events.figures import EventSummary
from scheduler_app.store.paging import PageRequest
from scheduler_app.usecases.questions.explanation import explain_schedule, zone_of

ROWS = 20
#: Runs in the strip.
MOST_IN_STRIP = 60
#: Events in the scatter.
DOTS = 300
CHART = (600.0, 110.0)
#: Where the dots begin, right of the scale, and where they end.
LEFT, RIGHT = 40.0, 596.0
#: The scale of the scatter, milliseconds.
LEAST_MS, MOST_MS = 1.0, 100_000.0
LINES = ((1.0, "1 ms"), (10.0, "10 ms"), (100.0, "100 ms"), (1_000.0, "1 s"), (10_000.0, "10 s"))
LONGEST_HISTORY = timedelta(days=36_500)


def history(schedule_id: WholeId, query: Loaded, now: datetime) -> View:
    """What `history.html` shows of a schedule, within `since` and `until` of the query where they are given;
    a time without an offset is one of UTC."""
    assembly, since, until = services(), _in_utc(query.get("since")), _in_utc(query.get("until"))
    outcomes = assembly.event_figures.of_schedule(
        schedule_id, since or now - LONGEST_HISTORY, until or now, most=DOTS
    )
    newest, oldest = (outcomes[0].run_time, outcomes[-1].run_time) if outcomes else (now, now)
    begin, end = since or oldest, until or newest
    window = PageRequest(limit=ROWS, after=query.get("cursor"), since=since, until=until)
    found = assembly.event_lists.page(tenant(), window, schedule_id=schedule_id, states=FINAL)
    strip = outcomes[:MOST_IN_STRIP]
    chosen = {
        name: _written(moment) for name, moment in (("from", since), ("to", until)) if moment is not None
    }
    of_schedule = {"schedule_id": name_of(schedule_id)}
    return {
        "history": found,
        "of": query["of"],
        "dots": dots(outcomes, query["of"], begin, end),
        "omitted": len(outcomes) == DOTS,
        "strip": strip,
        "longest": max((each.duration_ms or 0 for each in strip), default=0) or 1,
        "counts": Counter(each.state.value for each in strip).most_common(),
        "names_of_scale": {"lag": "how late it was", "duration": "how long it took"},
        "lines": [(round(CHART[1] - _height(value), 1), text) for value, text in LINES],
        "chart": CHART,
        "plot": (LEFT, RIGHT),
        "first": begin,
        "last": end,
        "chosen": chosen,
        "all_events": f"{url_for(f'{PAGES}.events')}?{urlencode(of_schedule | chosen)}",
    }


def dots(outcomes: list[EventSummary], of: str, begin: datetime, end: datetime) -> list[Dot]:
    """Events over time, from `begin` to `end`, by their lag or their duration, on a logarithmic scale."""
    span, found = (end - begin).total_seconds() or 1.0, []
    for each in outcomes:
        value = each.lag_ms if of == "lag" else each.duration_ms
        if value is None:
            continue
        x = (each.run_time - begin).total_seconds() / span * (RIGHT - LEFT) + LEFT
        title = f"{precise(each.run_time)}: {state_words(each.state)}, {of} {value:.0f} ms"
        link = url_for(f"{PAGES}.event", event_id=each.id)
        found.append(Dot(round(x, 1), round(CHART[1] - _height(value), 1), each.state.value, title, link))
    return found


def _height(milliseconds: float) -> float:
    return 4 + on_log_scale(milliseconds, LEAST_MS, MOST_MS, CHART[1] - 8)


def _in_utc(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


OCCURRENCES = 20
PENDING = 10
EDITS = 10


class ScheduleQuery(ActionResultQuery):
    cursor = Cursor()
    of = fields.String(validate=validate.OneOf(["lag", "duration"]), load_default="lag")
    since = LocalOrInstant(dates=True, data_key="from")
    until = LocalOrInstant(dates=True, data_key="to")
    why = fields.String(validate=validate.Length(max=64))
    display_timezone = fields.String(validate=validate.Length(max=200))


@blueprint.get("/schedules/<schedule:schedule_id>")
@takes_query(ScheduleQuery)
def schedule(query: Loaded, schedule_id: WholeId) -> str:
    assembly = services()
    now, lists = assembly.now(), assembly.event_lists
    found = assembly.manager.get(schedule_id)
    view = schedule_shown(found, now)
    pending = lists.page(
        tenant(),
        PageRequest(limit=PENDING),
        schedule_id=schedule_id,
        states=LIVING,
        soonest_first=True,
    )
    asked, wrong_zone = _asked(query)
    try:
        jitter = Jitter(found.jitter_seconds, found.id)
        preview = preview_shown(found.trigger, found.calendar, found.recurrence(), now, asked, jitter)
        note_blackouts(
            cast("list[dict[str, Any]]", preview["occurrences"]), found, assembly.blackouts.everybodys(now)
        )
    except InvalidRecurrence:
        preview = {"occurrences": []}  # the reason is among the warnings of the view
    past: dict[str, Any] = history(schedule_id, query, now)
    return render_template(
        "schedule.html",
        schedule=view,
        sentence=_sentence(view),
        closed_words=choice_words("on_holiday", str(view.get("on_holiday", "skip"))),
        wrong=_wrong(found, view, past["history"].rows if not past["chosen"] else []),
        how=_how(view),
        written=when_text(view),
        preview=preview,
        pending=pending.rows,
        skippable=next((each for each in pending.rows if _is_skippable(each, now)), None),
        curl=curl(view),
        done=query.get("done"),
        **past,
        edits=assembly.audit.edits(PageRequest(limit=EDITS), schedule_id).rows,
        display_timezone=query.get("display_timezone", ""),
        wrong_zone=wrong_zone,
        asked=query.get("why", ""),
        **_why(query, schedule_id, now),
    )


def _sentence(view: View) -> View | None:
    """What it does at its times: the verb, and to whom."""
    action = view.get("action")
    if isinstance(action, dict):
        kind = str(action.get("type", ""))
        return {"verb": "runs", "receiver": f"a {kind.replace('_', ' ')}"}
    receiver = view.get("destination") or urlsplit(str(view.get("callback_url", ""))).netloc
    verb = "posts to" if view.get("method") == "POST" else "calls"
    return {"verb": verb, "receiver": receiver} if receiver else None


def _wrong(found: Schedule, view: View, newest: Sequence[EventRecord]) -> list[View]:
    """What keeps it from running, or went wrong the last time, the worst first."""
    notes: list[View] = []
    if view["state"] == ScheduleState.ERROR:
        notes.append({"look": "failed", "title": "It cannot run", "text": view.get("reason"), "resume": True})
    if view["state"] == ScheduleState.PAUSED:
        said = ": ".join(str(view[name]) for name in ("reason", "note") if view.get(name))
        notes.append({"look": "paused", "title": "It is paused", "text": said, "resume": True})
    if held := services().schedules.held_by([found]).get(found.id):
        text = "Nothing of it is sent until that is off."
        notes.append({"look": "held", "title": f"Held: a stop switch is on for {held}", "text": text})
    last = next(iter(newest), None)
    if last is not None and last.state is State.ERROR:
        attempt = last.attempts[-1] if last.attempts else {}
        said = " ".join(str(attempt[name]) for name in ("status_code", "error") if attempt.get(name))
        tries = f"{len(last.attempts)} tries, the last one: " if len(last.attempts) > 1 else ""
        notes.append(
            {
                "look": "failed",
                "title": "The last run failed",
                "at": last.run_time,
                "text": f"{tries}{said or 'no answer'}",
                "event_id": last.id,
            }
        )
    warnings = view.get("warnings")
    told = warnings if isinstance(warnings, list | tuple) else ()
    return [*notes, *({"look": "retry", "title": each} for each in told)]


def _how(view: View) -> list[tuple[str, str]]:
    """Its policies, in one line each."""
    texts = with_defaults(texts_of(view))
    return [
        ("Late", late_words(texts)),
        ("Overlapping", overlap_words(texts)),
        ("Failing", retry_words(texts)),
        ("Tells", told_words(texts).removeprefix("tells ")),
        ("Answer", answer_words(texts)),
        ("Start", start_words(texts)),
    ]


def _is_skippable(event: EventRecord, now: datetime) -> bool:
    """Whether it is the run of a time to come, that no worker has taken."""
    return event.kind is Kind.SCHEDULED and event.state is not State.RUNNING and event.run_time > now


@blueprint.post("/schedules/<schedule:schedule_id>/edits/<edit_id>/revert")
@takes_form(NoFields)
def revert_on_page(_: Loaded, schedule_id: WholeId, edit_id: str) -> Response:
    revert(schedule_id, edit_id)
    return to_page("schedule", schedule_id=schedule_id, done="reverted")


def curl(view: View) -> str:
    """The request as a command for a shell; secrets are masked in it as in every answer."""
    words = ["curl", "-X", str(view.get("method")), str(view.get("callback_url"))]
    headers = view.get("headers")
    for name, value in headers.items() if isinstance(headers, dict) else ():
        words += ["-H", f"{name}: {value}"]
    for name in BODY_FIELDS:
        if (body := view.get(name)) is not None:
            words += ["--data-raw", body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)]
    return shlex.join(words)


def _asked(query: Loaded) -> tuple[Loaded, str]:
    """Which occurrences to show, and what is wrong with the zone that was asked for."""
    if zone := query.get("display_timezone"):
        try:
            return PreviewQuery().load({"limit": OCCURRENCES, "display_timezone": zone}), ""
        except ValidationError as error:
            return {"limit": OCCURRENCES}, "; ".join(error.messages_dict.get("display_timezone", []))
    return {"limit": OCCURRENCES}, ""


def _why(query: Loaded, schedule_id: WholeId, now: datetime) -> View:
    """Why it fires at the instant that was asked about, or does not."""
    if not query.get("why"):
        return {}
    try:
        at = WhyQuery().load({"at": query["why"].strip()})["at"]
        found, explanation, event = explain_schedule(services().store, schedule_id, at, now)
    except ValidationError as error:
        return {"why_wrong": "; ".join(error.messages_dict.get("at", []))}
    except (InvalidField, InvalidRecurrence) as error:
        return {"why_wrong": str(error)}
    jitter = Jitter(found.jitter_seconds, found.id)
    return {"why": explanation_shown(explanation, event, zone_of(found), jitter)}
