"""/api/tzdata: which schedules the installed zone data and holiday data would move."""

from api.blueprint import ApiBlueprint
from api.json_types import Loaded, View
from api.services import services
from api.tenancy import tenant
from api.wire import ZoneCheckOutput, ZoneCheckQuery, window, zone_check_shown
from scheduler_app.usecases.zone_check import check_zones

blueprint = ApiBlueprint(
    "tzdata",
    __name__,
    url_prefix="/api/tzdata",
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
