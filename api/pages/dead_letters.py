"""Dead letters by their causes, sent again cause by cause."""

from flask import Blueprint, redirect, render_template, url_for
from marshmallow import fields, validate
from werkzeug.wrappers import Response

from api.auth import PAGES
from api.json_types import Loaded
from api.pages.forms import Done, cursor, takes_form, takes_query
from api.services import services
from api.tenancy import tenant
from api.wire.field_types import Cursor
from api.wire.input_schema import InputSchema
from scheduler_app.domain.retry import Codes
from scheduler_app.store.events.lists import Narrowing
from scheduler_app.store.paging import Window

#: The newest dead letters, among which causes are told apart.
MOST_READ = 10_000
MOST_CAUSES = 100
#: How many are sent again at a time.
PAGE = 500


class CauseForm(InputSchema):
    """What the dead letters of a cause have in common."""

    origin = fields.String(required=True, validate=validate.Length(max=2_048))
    status = fields.Integer(validate=validate.Range(100, 599))
    error = fields.String(validate=validate.Length(max=200))
    cursor = Cursor()


def register(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/dead-letters", view_func=dead_letters, methods=["GET"])
    blueprint.add_url_rule("/dead-letters/send-again", view_func=send_cause_again, methods=["POST"])


@takes_query(Done)
def dead_letters(query: Loaded) -> str:
    causes = services().store.event_lists.dead_letter_causes(tenant=tenant(), most=MOST_READ)
    return render_template(
        "dead_letters.html",
        causes=causes[:MOST_CAUSES],
        omitted=max(0, len(causes) - MOST_CAUSES),
        read=sum(cause.count for cause in causes),
        most=MOST_READ,
        done=query.get("done"),
        count=query.get("count"),
    )


@takes_form(CauseForm)
def send_cause_again(form: Loaded) -> Response | str:
    made = services()
    narrowing = Narrowing(
        origin=form["origin"],
        status=Codes((form["status"],)) if "status" in form else None,
        error=form.get("error"),
    )
    page = made.events.redrive_page(
        Window(limit=PAGE, after=form.get("cursor")), made.now(), tenant=tenant(), narrowing=narrowing
    )
    if page.next is None and not page.skipped:
        return redirect(url_for(f"{PAGES}.dead_letters", done="sent again", count=page.count), 303)
    return render_template("sent_again.html", page=page, cause=form, cursor=cursor(page.next), most=PAGE)
