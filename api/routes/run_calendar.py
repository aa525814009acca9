"""/api/v1/calendar: what ran and what is to come, in parts of a time."""

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire import run_calendar as wire

run_calendar_blueprint = ApiBlueprint("run_calendar", "/api/v1/calendar", "What ran, and what is to come")


@run_calendar_blueprint.route("", methods=["GET"])
@run_calendar_blueprint.arguments(wire.RunCalendarQuery, location="query")
@run_calendar_blueprint.response(200, wire.RunCalendarOutput)
def get_run_calendar(query: Loaded) -> View:
    """Count what ran and what is to come in each part of a time, and name what runs rarely

    Runs up to now count where they were due, by what became of them; later ones are counted by the rules of
    active schedules and by what waits, as the forecast does. 50,000 runs are read, and rules are evaluated
    for 2 seconds at most: where there is more, the answer says what is estimated or left out.
    """
    assembly = services()
    now = assembly.now()
    period = wire.period_of(query, now)
    found = assembly.run_calendars.read(tenant(), period, wire.choice_of(query), now)
    return wire.run_calendar_shown(found, period, now)
