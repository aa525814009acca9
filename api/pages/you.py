"""What a person has chosen for the pages: the zone in which they show times."""

from flask import render_template, request
from marshmallow import validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.access import cookie, set_cookie
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.pages.times import BROWSER_ZONE, CHOSEN_ZONE
from scheduler_app.api.scopes import may
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence.zones import timezone_named

_YEAR_SECONDS = 366 * 86_400


class ZoneForm(InputSchema):
    timezone = fields.String(validate=validate.Length(max=64))


@blueprint.get("/you")
@forms.takes_query(forms.ActionResultQuery)
def you(query: Loaded) -> str:
    return _page({"timezone": cookie(CHOSEN_ZONE)}, done=query.get("done"))


@blueprint.post("/you")
@forms.takes_form(ZoneForm)
def choose_zone(form: Loaded) -> Response | tuple[str, int]:
    """Keeps it in a cookie of this browser; an empty one leaves it to the browser again."""
    zone = form.get("timezone", "")
    try:
        if zone:
            timezone_named(zone)
    except InvalidField as error:
        return _page(form, {"timezone": [error.message]}), 422
    answer = to_page("you", done="saved")
    set_cookie(answer, CHOSEN_ZONE, zone, max_age=_YEAR_SECONDS if zone else 0)
    return answer


def _page(values: Loaded, errors: dict[str, list[str]] | None = None, done: str | None = None) -> str:
    return render_template(
        "you.html",
        values=values,
        errors=errors or {},
        browsers=request.cookies.get(BROWSER_ZONE, "")[:64],
        scopes=[scope for scope in KeyScope if may(scope)],
        done=done,
    )
