"""Go anywhere: a page, a schedule by a part of its name, an event by its id."""

from flask import redirect, render_template, request, url_for
from marshmallow import validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages.forms import LOOK_SECONDS, takes_query
from scheduler_app.api.pages.frame import blueprint
from scheduler_app.api.pages.places import PLACES
from scheduler_app.api.scopes import may
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store.paging import PageRequest

MOST = 8


class GoQuery(InputSchema):
    to = fields.String(validate=validate.Length(max=200))


@blueprint.get("/go")
@takes_query(GoQuery)
def go(query: Loaded) -> str | Response:
    """Lists the pages that match the text. A form that was submitted redirects to a single match; the
    search that runs while a person types only lists."""
    found = _places(query.get("to", "").strip())
    if request.headers.get("HX-Request"):
        return render_template("found.html", found=found, to=query.get("to"))
    if len(found) == 1 and query.get("to"):
        return redirect(found[0][1], 303)
    return render_template("go.html", found=found, to=query.get("to", ""))


def _places(wanted: str) -> list[tuple[str, str]]:
    """Names with their addresses."""
    pages = [
        (page.name, page.address())
        for place in PLACES
        for page in place.pages
        if page.is_called(wanted) and (may(KeyScope.WRITE) or not page.is_form)
    ]
    if not wanted:
        return pages
    found = services().schedules.search(tenant(), wanted, PageRequest(limit=MOST, seconds=LOOK_SECONDS))
    schedules = [
        (each.name, url_for(f"{PAGES}.schedule", schedule_id=each.id))
        for each in found.by_name.rows
        if isinstance(each, Schedule)
    ]
    if found.is_schedule:
        schedules.append((wanted, url_for(f"{PAGES}.schedule", schedule_id=wanted)))
    if found.is_event:
        schedules.append((f"Event {wanted}", url_for(f"{PAGES}.event", event_id=wanted)))
    if found.by_name.next is not None:
        # There may be more than fit here, or were found in time.
        everything = url_for(f"{PAGES}.schedules", text=wanted)
        schedules.append((f"All schedules with “{wanted}” in their names", everything))
    return [*pages, *schedules]
