"""What will fire, when and why: previews, explanations, and the forecast of what falls due."""

from threading import Lock
from typing import Any, cast

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.problems import RETRY_AFTER_SECONDS, HttpProblem
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire import examples
from scheduler_app.api.wire import preview as wire
from scheduler_app.api.wire.blackout import note_blackouts
from scheduler_app.api.wire.forecast import ForecastOutput, ForecastQuery, buckets_of, forecast_shown
from scheduler_app.api.wire.promise import PromiseQuery, is_promise_asked, promised
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.forecast import ForecastChoice
from scheduler_app.domain.ids import WholeId
from scheduler_app.usecases.questions.explanation import explain_schedule, zone_of

preview_blueprint = ApiBlueprint("previews", "/api/v1/schedules", "When will it really run?")


@preview_blueprint.route("/preview", methods=["POST"], scope=KeyScope.READ, query=PromiseQuery)
@preview_blueprint.arguments(wire.PreviewInput, example=examples.PREVIEW)
@preview_blueprint.response(200, wire.PreviewOutput)
def preview_rule(given: Loaded) -> View:
    """Show the next occurrences of a trigger that is not saved"""
    assembly = services()
    now, promise = assembly.now(), {}
    if is_promise_asked():
        unsaved = wire.unsaved_schedule(tenant(), given, assembly.calendars, now)
        promise = promised(unsaved, asks_receiver=False)
    return wire.preview_shown(*wire.unsaved_trigger(tenant(), given, assembly.calendars, now)) | promise


@preview_blueprint.route("/<schedule:schedule_id>/preview", methods=["GET"])
@preview_blueprint.arguments(wire.SavedPreviewQuery, location="query")
@preview_blueprint.response(200, wire.PreviewOutput)
def preview_schedule(query: Loaded, schedule_id: WholeId) -> View:
    """Show the next occurrences of a schedule's trigger, whatever the schedule's state"""
    schedule = services().manager.get(schedule_id)
    now = services().now()
    after = query.get("after", now)
    jitter = wire.Jitter(schedule.jitter_seconds, schedule.id)
    view = wire.preview_shown(
        schedule.trigger, schedule.calendar, schedule.recurrence(), after, query, jitter
    )
    note_blackouts(
        cast("list[dict[str, Any]]", view["occurrences"]), schedule, services().blackouts.everybodys(now)
    )
    return view | (promised(schedule) if query["promise"] else {})


explanation_blueprint = ApiBlueprint("explanations", "/api/v1/schedules", "Why does it run, or not?")


@explanation_blueprint.route("/<schedule:schedule_id>/why", methods=["GET"])
@explanation_blueprint.arguments(wire.WhyQuery, location="query")
@explanation_blueprint.response(200, wire.WhyOutput)
def explain_schedule_at(query: Loaded, schedule_id: WholeId) -> View:
    """Explain why a schedule fires at an instant, past or future, or why it does not; also a deleted one"""
    assembly = services()
    schedule, explanation, event = explain_schedule(assembly.store, schedule_id, query["at"], assembly.now())
    jitter = wire.Jitter(schedule.jitter_seconds, schedule.id)
    return wire.explanation_shown(explanation, event, zone_of(schedule), jitter)


forecast_blueprint = ApiBlueprint("forecast", "/api/v1/forecast", "What falls due, before it comes")

#: A forecast may take seconds of this process: one at a time leaves the others' requests their share.
_one_at_a_time = Lock()


@forecast_blueprint.route("", methods=["GET"])
@forecast_blueprint.arguments(ForecastQuery, location="query")
@forecast_blueprint.response(200, ForecastOutput)
def forecast(query: Loaded) -> View:
    """Show how many callbacks fall due in each part of a time, by destination and origin

    From the rules of active schedules, and from the events and messages that wait, with jitter and blackouts:
    what a blackout skips is not counted, and what it postpones is counted where it ends. 20,000
    schedules are evaluated in 8 seconds at most; where there are more, some by chance stand for all, and the
    answer says so. Each process makes one forecast at a time; another is refused with 503 meanwhile.
    """
    assembly = services()
    now = assembly.now()
    buckets = buckets_of(query, now)
    if not _one_at_a_time.acquire(blocking=False):
        raise HttpProblem(
            503,
            "another forecast is being made; try again in a few seconds",
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
        )
    try:
        choice = ForecastChoice(tag=query.get("tag"))
        return forecast_shown(assembly.forecasts.forecast(tenant(), buckets, now, choice))
    finally:
        _one_at_a_time.release()
