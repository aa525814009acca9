"""The forecast: how many callbacks fall due when, before they come."""

from dataclasses import dataclass, field
from datetime import timedelta
from threading import Lock

from flask import Blueprint, current_app, render_template
from marshmallow import fields, validate

from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages.charts import stacked
from scheduler_app.api.pages.forms import Nothing, takes_query
from scheduler_app.api.pages.words import minute
from scheduler_app.api.problems import RETRY_AFTER_SECONDS, Problem
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire.forecast import buckets_of, forecast_shown
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.clock import monotonic

HOURS = {"6": "6 hours", "24": "a day", "168": "a week"}
CHART = (600.0, 120.0)
#: However many pages are open, forecasts of a length take a thread of a process so much of its time: each is
#: shown for so many times as long as it took to make, and not longer than a minute. One of few schedules is
#: nearly live, so that a schedule that was just made is in it.
KEPT_TIMES = 20
KEPT_SECONDS = 60.0
#: Parts of the day on the overview, 48 of half an hour.
NEXT_DAY = "24"


class ForecastQuery(InputSchema):
    hours = fields.String(validate=validate.OneOf(list(HOURS)), load_default=NEXT_DAY)


@dataclass
class _Kept:
    """The newest forecast of each length with the moment up to which it is shown; one is made at a time."""

    lock: Lock = field(default_factory=Lock)
    made: dict[tuple[str, str], tuple[float, View]] = field(default_factory=dict)


def register(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/forecast", view_func=forecast, methods=["GET"])
    blueprint.add_url_rule("/forecast/next-day", view_func=next_day, methods=["GET"])


@takes_query(ForecastQuery)
def forecast(query: Loaded) -> str:
    found = _forecast(query["hours"])
    return render_template("forecast.html", hours=query["hours"], choices=HOURS, **_drawn(found))


@takes_query(Nothing)
def next_day(_: Loaded) -> str:
    """The part of the overview that is loaded after the rest of it."""
    return render_template("next_day.html", **_drawn(_forecast(NEXT_DAY)))


def _forecast(hours: str) -> View:
    """A forecast, from the cache while that is fresh. Raises Problem while another request computes the first
    one: a request that waited for it would block a thread of the server."""
    key, kept = (tenant(), hours), _kept()
    until, found = kept.made.get(key, (0.0, {}))
    if found and monotonic() < until:
        return found
    if not kept.lock.acquire(blocking=False):
        if found:
            return found
        raise Problem(
            503,
            "another forecast is being made; load the page again in a few seconds",
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
        )
    try:
        made, now, began = services(), services().now(), monotonic()
        buckets = buckets_of({"start": now, "end": now + timedelta(hours=int(hours))}, now)
        found = forecast_shown(made.forecasts.forecast(buckets, now, tenant=tenant()))
        ended = monotonic()
        kept.made[key] = (ended + min(KEPT_TIMES * (ended - began), KEPT_SECONDS), found)
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
    columns = [(minute(each["start"]), {"to_come": each["count"]}) for each in buckets]
    return {"found": found, "bars": stacked(columns, ["to_come"], *CHART), "chart": CHART}
