"""What the field "When" means: its next runs as a list and in small months, its other notations, and the
readings of a text that can be read in several ways."""

from datetime import datetime, timedelta

from flask import request
from marshmallow import ValidationError

from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages.month_grid import Month, end_of_months, firing_days, months
from scheduler_app.api.pages.when import (
    COMPARED_OCCURRENCES,
    Fields,
    picked_recurrence,
    picker_fields,
    trigger_fields,
)
from scheduler_app.api.problems import problem_of
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.preview import (
    Jitter,
    PreviewedTrigger,
    PreviewInput,
    preview_shown,
    unsaved_trigger,
)
from scheduler_app.domain.errors import InvalidField, InvalidRecurrence
from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.recurrence.zones import instant_at, local_in
from scheduler_app.domain.schedule import Schedule
from scheduler_app.usecases.questions.change_preview import EditEffect

#: Runs that are listed.
OCCURRENCES = 5
#: Fields of the form that say when, beside the text.
_BESIDE = ("timezone", "calendar", "gap", "overlap", "on_holiday")
_PREVIEW = PreviewInput()
_YEAR = timedelta(days=365)


def is_part() -> bool:
    """Whether a script asks for a part of the page; without one, a browser gets the whole page."""
    return "HX-Request" in request.headers


def when_previewed(form: Loaded, goes_on: Schedule | None = None) -> View:
    """What a preview shows: of the text from now on, or of the schedule `goes_on`, whose times the form
    keeps."""
    if not form.get("when"):
        return {}
    # A phrase counts from the second that has begun, `every_seconds` from the next one; the picker compares
    # both.
    now = services().now().replace(microsecond=0)
    try:
        asked = _asked(form["when"], form, now)
        preview = preview_shown(*asked)
        picks = _picks(form, preview, now)
        if goes_on is not None:
            asked = PreviewedTrigger(
                goes_on.trigger, goes_on.calendar, goes_on.recurrence(), now, asked.query, Jitter(0.0, None)
            )
            preview = preview_shown(*asked)
    except (ValidationError, InvalidField) as error:
        return {"when_problem": problem_of(error)}
    return {
        "preview": preview,
        "most": OCCURRENCES,
        "ways": _other_ways(form["when"], preview),
        "picks": picks,
        "months": _months(asked, now),
        "in_a_year": _in_a_year(asked, now),
    }


def _asked(text: str, form: Loaded, now: datetime) -> PreviewedTrigger:
    """The text of the field "When", beside the form's others. Raises ValidationError, InvalidField."""
    given: View = {"limit": COMPARED_OCCURRENCES, **trigger_fields(text)}
    given |= {name: form[name] for name in _BESIDE if form.get(name)}
    return unsaved_trigger(tenant(), _PREVIEW.load(given), services().calendars, now)


def _months(asked: PreviewedTrigger, now: datetime) -> list[Month]:
    """From the month of the next run on; none where it takes too long to tell, or nothing comes."""
    zone, recurrence = asked.trigger.timezone, asked.recurrence
    known = asked.calendar.known if asked.calendar else None
    try:
        first = recurrence.after(now)
        if first is None:
            return []
        begin = local_in(first, zone).date()
        end = datetime.combine(end_of_months(begin), datetime.min.time())
        fires = firing_days(recurrence, now, instant_at(end, zone), zone)
    except (InvalidRecurrence, InvalidField, OverflowError, ValueError):
        return []
    return months(begin, fires, closed=known.days.name_of if known else lambda _: "")


def changed_months(effect: EditEffect, zone: str) -> list[Month]:
    """The months from the first day that an edit changes on; none where so many runs were compared that these
    months are not reached."""
    begin = local_in(min((*effect.added, *effect.removed)), zone).date()
    end = datetime.combine(end_of_months(begin), datetime.min.time())
    if effect.until is not None and effect.until < instant_at(end, zone):
        return []
    fires = {
        local.date(): local for each in (*effect.added, *effect.kept) for local in (local_in(each, zone),)
    }
    return months(begin, fires, gone={local_in(each, zone).date() for each in effect.removed})


def _in_a_year(asked: PreviewedTrigger, now: datetime) -> int | None:
    """How often it runs in the next year; None where counting takes too long."""
    if not isinstance(asked.recurrence, Recurrence):
        return None
    try:
        return asked.recurrence.count(now, now + _YEAR)
    except InvalidRecurrence:
        return None


def _picks(form: Loaded, preview: View, now: datetime) -> Fields | None:
    """The picker's fields that mean the same as the text, as far as the next occurrences tell."""
    occurrences = preview["occurrences"]
    assert isinstance(occurrences, list)  # noqa: S101 (as PreviewOutput says)
    fields = picker_fields(str(preview.get("recurrence", "")), occurrences)
    if fields is None:
        return None
    try:
        same = preview_shown(*_asked(picked_recurrence(fields), form, now))
    except (ValidationError, InvalidField):
        return None
    others = same["occurrences"]
    assert isinstance(others, list)  # noqa: S101 (as PreviewOutput says)
    return fields if [each["run_time"] for each in occurrences] == [o["run_time"] for o in others] else None


def _other_ways(text: str, preview: View) -> list[tuple[str, str]]:
    """The same rule in the other notations, each with its name."""
    # Imported when a rule is first shown, so that the API starts without the modules for cron.
    from scheduler_app.domain.triggers.cron.as_cron import as_cron

    written = preview.get("recurrence")
    if not isinstance(written, str):
        return []
    ways = [("RRULE", written)]
    try:
        found = as_cron(Recurrence.parse(written, created_at=services().now()))
    except InvalidRecurrence:
        found = None
    if found:
        ways.append(("cron", found))
    return [(name, way) for name, way in ways if way.split() != text.split()]
