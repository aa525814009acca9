"""Calendar feeds: addresses by which a calendar program shows what runs. Each is shown once, when made."""

from flask import Response as FileResponse
from flask import render_template, request
from marshmallow import Schema, ValidationError, validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api import idempotency
from scheduler_app.api.auth import FEED_PATH
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.problems import HttpProblem, problem_of
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.calendar import FeedInput
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.errors import Conflict
from scheduler_app.domain.ids import WholeId, name_of, whole_id

CALENDAR = "text/calendar"
_LENGTHS = {"name": 1_000, "tag": 200}

FeedForm: type[Schema] = InputSchema.from_dict(forms.text_fields(_LENGTHS), name="FeedForm")


class FeedsQuery(forms.ActionResultQuery):
    tag = fields.String(validate=validate.Length(max=64))
    """What the form has for a start: a schedule's page leads here with its tag."""


class FeedNamed(InputSchema):
    id = fields.String(required=True, validate=validate.Length(1, 100))


@blueprint.get("/calendar-feeds")
@forms.takes_query(FeedsQuery)
def calendar_feeds(query: Loaded) -> str:
    return _page({"tag": query.get("tag", "")}, done=query.get("done"))


@blueprint.post("/calendar-feeds")
@forms.takes_form(FeedForm)
def save_feed(form: Loaded) -> str | tuple[str, int]:
    try:
        given = FeedInput().load({name: form[name].strip() for name in _LENGTHS if form.get(name)})
        feed, token = services().calendar_feeds.create(
            tenant(), given["name"], given.get("tag"), services().now()
        )
    except (ValidationError, Conflict) as error:
        problem = problem_of(error)
        return _page(form, problem), problem.status
    base = services().settings.public_url or request.host_url.rstrip("/")
    url = f"{base}{FEED_PATH}?token={idempotency.shown_once(token)}"
    return render_template("calendar_feed_url.html", feed=feed, url=url)


@blueprint.post("/calendar-feeds/delete")
@forms.takes_form(FeedNamed)
def delete_feed(form: Loaded) -> Response:
    services().calendar_feeds.delete(whole_id(tenant(), form["id"]))
    return to_page("calendar_feeds", done="deleted")


@blueprint.get("/schedules/<schedule:schedule_id>/calendar.ics")
@forms.takes_query(forms.NoFields)
def schedule_file(_: Loaded, schedule_id: WholeId) -> FileResponse:
    """The same as a file, of one schedule, for a program that only imports."""
    assembly = services()
    schedule = assembly.manager.get(schedule_id)
    content = assembly.calendar_feeds.of_schedule(schedule, assembly.now())
    headers = {"Content-Disposition": f'attachment; filename="{name_of(schedule_id)}.ics"'}
    return FileResponse(content, content_type=f"{CALENDAR}; charset=utf-8", headers=headers)


def _page(values: Loaded, problem: HttpProblem | None = None, *, done: str | None = None) -> str:
    errors = forms.errors_by_field(problem, {})
    return render_template(
        "calendar_feeds.html",
        rows=services().calendar_feeds.all(tenant()),
        values=values,
        errors=errors,
        others=forms.other_errors(errors, _LENGTHS),
        done=done,
    )
