"""/api/v1/tzdata: which schedules the installed zone data and holiday data would move."""

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire import ZoneCheckOutput, ZoneCheckQuery, window, zone_check_shown
from scheduler_app.usecases.zone_check import check_zones

blueprint = ApiBlueprint(
    "tzdata",
    __name__,
    url_prefix="/api/v1/tzdata",
    description="Zone and holiday data, and what a new release moves",
)


@blueprint.route("/check", methods=["GET"])
@blueprint.arguments(ZoneCheckQuery, location="query")
@blueprint.response(200, ZoneCheckOutput)
def check_tzdata(query: Loaded) -> View:
    """Show which schedules the installed zone and holiday data would move, a page a call

    Nothing is changed.
    """
    made = services()
    return zone_check_shown(check_zones(made.store, window(query), made.now(), tenant=tenant()))
