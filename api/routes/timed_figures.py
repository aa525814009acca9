"""/api/v1/figures: how many attempts ended how, how late they were and how long they took."""

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire import timed_figures as wire

figures_blueprint = ApiBlueprint("figures", "/api/v1/figures", "How many, how late, how long")


@figures_blueprint.route("", methods=["GET"])
@figures_blueprint.arguments(wire.FiguresQuery, location="query")
@figures_blueprint.response(200, wire.FiguresOutput)
def get_figures(query: Loaded) -> View:
    """Show how many attempts ended how, how late they were and how long they took, in parts of a time

    Workers count attempts for the installation, each destination and each tag by the minute or hour in which
    they end, and add them up every five seconds. Each worker counts 2,000 tags of a tenant in an hour, those
    that it meets first. A schedule's are read from its newest 5,000 events, by the last attempt of each, at
    their run times.
    """
    assembly = services()
    now = assembly.now()
    asked = wire.figures_asked(query, now)
    if "schedule_id" in query:
        assembly.schedules.check_known(query["schedule_id"])
        return wire.figures_shown(assembly.figures.of_schedule(query["schedule_id"], *asked), *asked)
    return wire.figures_shown(assembly.figures.of(wire.subject_of(query, tenant()), *asked, now), *asked)
