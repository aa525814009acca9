"""The forecast: how many callbacks fall due, and for whom."""

from dataclasses import dataclass, field
from datetime import timedelta
from threading import Lock

from flask import current_app, render_template
from marshmallow import validate

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages.formatting import stacked_bars
from scheduler_app.api.pages.forms import takes_query
from scheduler_app.api.pages.frame import blueprint
from scheduler_app.api.pages.times import instant
from scheduler_app.api.problems import RETRY_AFTER_SECONDS, HttpProblem
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.forecast import buckets_of, forecast_shown
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.clock import monotonic

HOURS = {"6": "6 hours", "24": "a day", "168": "a week"}
CHART = (600.0, 120.0)
#: A forecast is shown for `KEPT_TIMES` as long as it took to make, but for a minute at most. So making
#: forecasts takes a small part of a thread's time, however many pages are open, and one of few schedules is
#: nearly live: a schedule that was just made is in it.
KEPT_TIMES = 20
KEPT_SECONDS = 60.0


class ForecastPageQuery(InputSchema):
    hours = fields.String(validate=validate.OneOf(list(HOURS)), load_default="24")


@dataclass
class _Kept:
    """The newest forecast of each length with the moment up to which it is shown; one is made at a time."""

    lock: Lock = field(default_factory=Lock)
    forecasts: dict[tuple[str, str], tuple[float, View]] = field(default_factory=dict)


@blueprint.get("/forecast")
@takes_query(ForecastPageQuery)
def forecast(query: Loaded) -> str:
    found = _forecast(query["hours"])
    return render_template("forecast.html", hours=query["hours"], choices=HOURS, **_drawn(found))


def _forecast(hours: str) -> View:
    """A forecast, from the cache while that is fresh. Raises Problem while another request computes the first
    one: a request that waited for it would block a thread of the server."""
    key, kept = (tenant(), hours), _kept()
    until, found = kept.forecasts.get(key, (0.0, {}))
    if found and monotonic() < until:
        return found
    if not kept.lock.acquire(blocking=False):
        if found:
            return found
        raise HttpProblem(
            503,
            "another forecast is being made; load the page again in a few seconds",
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
        )
    try:
        assembly, now, began = services(), services().now(), monotonic()
        buckets = buckets_of({"start": now, "end": now + timedelta(hours=int(hours))}, now)
        found = forecast_shown(assembly.forecasts.forecast(tenant(), buckets, now))
        ended = monotonic()
        kept.forecasts[key] = (ended + min(KEPT_TIMES * (ended - began), KEPT_SECONDS), found)
    finally:
        kept.lock.release()
    return found


def _kept() -> _Kept:
    """The cache of the current application."""
    found: _Kept = current_app.extensions.setdefault("forecasts_of_pages", _Kept())
    return found


def _drawn(found: View) -> View:
    buckets = found["buckets"]
    assert isinstance(buckets, list)  # noqa: S101 (as ForecastOutput says)
    columns = [(instant(each["start"]), {"to_come": each["count"]}) for each in buckets]
    return {"found": found, "bars": stacked_bars(columns, ["to_come"], *CHART), "chart": CHART}
