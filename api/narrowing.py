"""What a key with tags may ask for: what concerns schedules with one of them, and nothing else.

The table says for each route how it is narrowed to these schedules. A route that is not in the table is
refused for such a key: a new route stays closed to it until it has a row.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from flask import Flask, current_app, g, request
from werkzeug.datastructures import ImmutableMultiDict

from scheduler_app.api.blueprint import query_parameters, read_json
from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.services import caller, services, tenant
from scheduler_app.domain.errors import NotFound
from scheduler_app.domain.ids import WholeId, name_of, whole_id

#: Values in a body whose tag is read; the route reads it again, by its schema.
_MOST_VALUES: Final = 1_000


class Narrowing(StrEnum):
    """How a route is narrowed to the schedules with a key's tags."""

    SCHEDULE = "its path names a schedule"
    EVENT = "its path names an event"
    TAG = "its query has `tag`"
    TAG_OR_SCHEDULE = "its query has `tag` or `schedule_id`"
    TAGS = "it asks its use case for what schedules with one of the tags show"
    BODY_TAG = "its body has `tag`"
    MAKES = "what it makes has `tags`, which the schema of schedules checks"
    SELECTION = "its form has ids of schedules, or `tag` for all with one"
    COMMON = "it shows and changes nothing of anybody's"


_ROUTES: Mapping[Narrowing, tuple[str, ...]] = {
    Narrowing.SCHEDULE: (
        *("schedules.get_schedule", "schedules.update_schedule", "schedules.delete_schedule"),
        *("schedules.pause_schedule", "schedules.resume_schedule", "schedules.trigger_schedule"),
        *("schedules.list_pending_events", "schedules.list_archived_events", "edits_log.list_edits"),
        *("previews.preview_schedule", "explanations.explain_schedule_at"),
        *("backfills.start_backfill", "backfills.get_backfill", "backfills.cancel_backfill"),
        *("signing.make_signing_secret", "signing.remove_signing_secret"),
        *("calendars_of_schedules.get_schedule_calendar_file", "pages.schedule"),
    ),
    Narrowing.EVENT: (
        *("events.get_event", "events.cancel_event", "events.redrive_event"),
        *("pages.event", "pages.send_again", "pages.cancel"),
    ),
    Narrowing.TAG: (
        *("schedules.list_schedules", "export.export_schedules", "events.list_events"),
        *("run_calendar.get_run_calendar", "calendars_of_schedules.get_calendar_file", "ledger.ledger"),
        *("forecast.forecast", "search.search", "tags.get_tag_summary", "failures.list_failures"),
        *("pages.schedules", "pages.events", "pages.calendar_view"),
        *("pages.export_runs", "pages.ask_send_runs"),
    ),
    Narrowing.TAG_OR_SCHEDULE: ("figures.get_figures",),
    Narrowing.TAGS: ("failures.get_failure",),
    Narrowing.BODY_TAG: (
        *("edits.pause_schedules", "edits.resume_schedules", "edits.delete_schedules"),
        *("events.redrive_events", "calendars_of_schedules.create_calendar_feed"),
    ),
    Narrowing.MAKES: ("schedules.create_schedule", "bulk.create_schedules"),
    Narrowing.SELECTION: ("pages.change_selected", "pages.send_runs"),
    Narrowing.COMMON: (
        *("previews.preview_rule", "tzdata.check_tzdata"),
        *("calendars.list_calendars", "calendars.get_calendar", "calendars.list_calendar_days"),
        *("pages.you", "pages.choose_zone"),
    ),
}
#: By endpoint.
NARROWINGS: Final = {route: how for how, routes in _ROUTES.items() for route in routes}


def check_narrowings(app: Flask) -> None:
    """Raises TypeError for a route of the table that is not there, or cannot be narrowed so."""
    rules = {rule.endpoint: rule for rule in app.url_map.iter_rules()}
    for endpoint, how in NARROWINGS.items():
        if endpoint not in rules:
            raise TypeError(f"{endpoint}: api/narrowing.py names a route that is not there")
        arguments, view = rules[endpoint].arguments, app.view_functions[endpoint]
        if (how is Narrowing.SCHEDULE and "schedule_id" not in arguments) or (
            how is Narrowing.EVENT and "event_id" not in arguments
        ):
            raise TypeError(f"{endpoint}: its path names no {how.name.lower()}")
        if how in (Narrowing.TAG, Narrowing.TAG_OR_SCHEDULE) and "tag" not in query_parameters(view):
            raise TypeError(f"{endpoint}: its query has no tag")


def require_narrowed() -> None:
    """Raises Problem, or NotFound, where the request concerns more than the schedules with one of the tags of
    its key, which has some."""
    if request.endpoint not in current_app.view_functions:
        return
    tags, how = caller().tags, NARROWINGS.get(request.endpoint)
    if how is None:
        raise HttpProblem(
            403,
            f"this key is for the schedules with {caller().tags_in_words} alone, and this concerns others,"
            " too: use a key without tags",
        )
    if (check := _CHECKS.get(how)) is not None:
        check(tags)


def _check_schedule(tags: frozenset[str]) -> None:
    schedule_id = (request.view_args or {})["schedule_id"]
    if request.method != "PUT":
        _check_visible([schedule_id], tags)
        return
    found = services().schedules.tags([schedule_id]).get(schedule_id)
    g.makes_schedule = found is None
    if found is not None and tags.isdisjoint(found):
        raise HttpProblem(409, f"the id {name_of(schedule_id)} is taken: take another one")


def _check_visible(ids: Sequence[WholeId], tags: frozenset[str]) -> None:
    """Raises NotFound for a schedule without any of the tags, as for one that is not there: before the rest
    of the request is read, which could tell the one from the other."""
    found = services().schedules.tags(ids)
    for each in ids:
        if tags.isdisjoint(found.get(each, ())):
            raise NotFound(f"there is no schedule {name_of(each)[:64]}")


def _check_event(tags: frozenset[str]) -> None:
    event_id = (request.view_args or {})["event_id"]
    owner = services().events.get(event_id).schedule_id or ""
    if tags.isdisjoint(services().schedules.tags([owner]).get(owner, ())):
        raise NotFound(f"there is no event {name_of(event_id)}; it may be beyond the retention")


def _check_tag(tags: frozenset[str]) -> None:
    _check_visible([whole_id(tenant(), name) for name in request.args.getlist("schedule_id")], tags)
    given = request.args.getlist("tag")
    if not given and (len(tags) == 1 or request.blueprint == "pages"):
        # A person of several tags begins with the first one.
        request.args = ImmutableMultiDict([*request.args.items(multi=True), ("tag", min(tags))])
        return
    for each in given or [""]:
        _check_is_own(each, tags, "the query")


def _check_tag_or_schedule(tags: frozenset[str]) -> None:
    if "tag" in request.args or "schedule_id" not in request.args:
        _check_tag(tags)
    else:
        _check_visible([whole_id(tenant(), name) for name in request.args.getlist("schedule_id")], tags)


def _check_body_tag(tags: frozenset[str]) -> None:
    raw = request.get_data(cache=True)
    body = read_json(raw, _MOST_VALUES) if raw else None
    _check_is_own(body.get("tag") if isinstance(body, dict) else None, tags, "the body")


def _check_selection(tags: frozenset[str]) -> None:
    if "every" in request.form:
        _check_is_own(request.form.get("tag"), tags, "the list")
        return
    _check_visible([whole_id(tenant(), name) for name in request.form.getlist("selected")], tags)


def _check_is_own(given: object, tags: frozenset[str], where: str) -> None:
    if not isinstance(given, str) or given not in tags:
        raise HttpProblem(
            403,
            f"this key is for the schedules with {caller().tags_in_words} alone: give it as `tag` in {where}",
        )


_CHECKS: Final[Mapping[Narrowing, Callable[[frozenset[str]], None]]] = {
    Narrowing.SCHEDULE: _check_schedule,
    Narrowing.EVENT: _check_event,
    Narrowing.TAG: _check_tag,
    Narrowing.TAG_OR_SCHEDULE: _check_tag_or_schedule,
    Narrowing.BODY_TAG: _check_body_tag,
    Narrowing.SELECTION: _check_selection,
}
