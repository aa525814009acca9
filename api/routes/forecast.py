"""/api/v1/forecast: what falls due when, before it comes."""

from threading import Lock

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.problems import RETRY_AFTER_SECONDS, Problem
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire.forecast import ForecastOutput, ForecastQuery, buckets_of, forecast_shown

blueprint = ApiBlueprint(
    "forecast", __name__, url_prefix="/api/v1/forecast", description="What falls due, before it comes"
)

#: A forecast may take seconds of this process: one at a time leaves the others' requests their share.
_one_at_a_time = Lock()


@blueprint.route("", methods=["GET"])
@blueprint.arguments(ForecastQuery, location="query")
@blueprint.response(200, ForecastOutput)
def forecast(query: Loaded) -> View:
    """Show how many callbacks fall due in each part of a time, by destination and origin

    From the rules of active schedules, and from the events and messages that wait, with jitter and blackouts:
    what a blackout skips is not counted, and what it postpones is counted where it ends. 20,000
    schedules are evaluated in 8 seconds at most; where there are more, some by chance stand for all, and the
    answer says so. Each process makes one forecast at a time; another is refused with 503 meanwhile.
    """
    made = services()
    now = made.now()
    buckets = buckets_of(query, now)
    if not _one_at_a_time.acquire(blocking=False):
        raise Problem(
            503,
            "another forecast is being made; try again in a few seconds",
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
        )
    try:
        return forecast_shown(made.forecasts.forecast(buckets, now, tenant=tenant()))
    finally:
        _one_at_a_time.release()
