"""Dead letters by their causes: sent again cause by cause, at once or at a rate; dismissed; exported."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

from flask import Blueprint, Response, redirect, render_template, stream_with_context, url_for
from marshmallow import fields, validate
from werkzeug.wrappers import Response as AnyResponse

from api.auth import PAGES
from api.json_types import Loaded
from api.pages.forms import Done, cursor, takes_form, takes_query
from api.services import services
from api.tenancy import tenant
from api.wire import EventOutput
from api.wire.field_types import Cursor, Instant
from api.wire.input_schema import InputSchema
from api.wire.presenters import event_shown
from scheduler_app.domain.event import State
from scheduler_app.domain.retry import Codes
from scheduler_app.store.events.lists import Narrowing
from scheduler_app.store.paging import Position, Window

#: The newest dead letters, among which causes are told apart.
MOST_READ = 10_000
MOST_CAUSES = 100
#: How many are sent again at a time.
PAGE = 500
#: How many dead letters an export has at most.
MOST_EXPORTED = 10_000
#: Requests a second that may be chosen; without one, all are sent at once.
RATES = (1.0, 5.0, 20.0, 100.0)
#: No batch may begin later than this: a form cannot put dead letters off for years.
LATEST_START = timedelta(days=1)


class Cause(InputSchema):
    """What the dead letters of a cause have in common."""

    origin = fields.String(required=True, validate=validate.Length(max=2_048))
    status = fields.Integer(validate=validate.Range(100, 599))
    error = fields.String(validate=validate.Length(max=200))


class CauseForm(Cause):
    cursor = Cursor()
    rate = fields.Float(validate=validate.OneOf(RATES))
    start = Instant()
    so_far = fields.Integer(validate=validate.Range(0), load_default=0)


def register(blueprint: Blueprint) -> None:
    blueprint.add_url_rule("/dead-letters", view_func=dead_letters, methods=["GET"])
    blueprint.add_url_rule("/dead-letters/send-again", view_func=send_cause_again, methods=["POST"])
    blueprint.add_url_rule("/dead-letters/dismiss", view_func=dismiss_cause, methods=["POST"])
    blueprint.add_url_rule("/dead-letters/export", view_func=export_cause, methods=["GET"])


@takes_query(Done)
def dead_letters(query: Loaded) -> str:
    causes = services().store.event_lists.dead_letter_causes(tenant=tenant(), most=MOST_READ)
    return render_template(
        "dead_letters.html",
        causes=causes[:MOST_CAUSES],
        omitted=max(0, len(causes) - MOST_CAUSES),
        read=sum(cause.count for cause in causes),
        most=MOST_READ,
        rates=RATES,
        done=query.get("done"),
        count=query.get("count"),
    )


@takes_form(CauseForm)
def send_cause_again(form: Loaded) -> AnyResponse | str:
    made, now = services(), services().now()
    start: datetime | None = form.get("start")
    page = made.events.redrive_page(
        Window(limit=PAGE, after=form.get("cursor")),
        now,
        tenant=tenant(),
        narrowing=_narrowing(form),
        a_second=form.get("rate"),
        start=min(start, now + LATEST_START) if start else None,
    )
    total = form["so_far"] + page.count
    if page.next is None and not page.skipped:
        return redirect(url_for(f"{PAGES}.dead_letters", done="sent again", count=total), 303)
    return _goes_on("send_cause_again", "sent again", form, total, page.next, page.skipped, page.last_due)


@takes_form(CauseForm)
def dismiss_cause(form: Loaded) -> AnyResponse | str:
    window = Window(limit=PAGE, after=form.get("cursor"))
    page = services().events.dismiss_page(
        window, services().now(), tenant=tenant(), narrowing=_narrowing(form)
    )
    total = form["so_far"] + page.count
    if page.next is None:
        return redirect(url_for(f"{PAGES}.dead_letters", done="dismissed", count=total), 303)
    return _goes_on("dismiss_cause", "dismissed", form, total, page.next, [], None)


@takes_query(Cause)
def export_cause(query: Loaded) -> Response:
    """The dead letters of a cause, one JSON object a line, as the API shows them."""
    lists, schema = services().store.event_lists, EventOutput()

    def lines() -> Iterator[str]:
        left, after = MOST_EXPORTED, None
        while left > 0:
            window = Window(limit=min(PAGE, left), after=after)
            page = lists.page(window, tenant=tenant(), states={State.ERROR}, narrowing=_narrowing(query))
            for event in page.rows:
                yield json.dumps(schema.dump(event_shown(event)), ensure_ascii=False) + "\n"
            left, after = left - len(page.rows), page.next
            if after is None:
                return

    answer = Response(stream_with_context(lines()), mimetype="application/x-ndjson")
    answer.headers["Content-Disposition"] = 'attachment; filename="dead-letters.ndjson"'
    return answer


def _goes_on(
    endpoint: str,
    done: str,
    form: Loaded,
    total: int,
    following: Position | None,
    skipped: list[tuple[str, str]],
    last_due: datetime | None,
) -> str:
    return render_template(
        "sent_again.html",
        action=url_for(f"{PAGES}.{endpoint}"),
        done=done,
        count=total,
        skipped=skipped,
        cause=form,
        cursor=cursor(following),
        start=last_due.isoformat() if last_due else None,
    )


def _narrowing(cause: Loaded) -> Narrowing:
    return Narrowing(
        origin=cause["origin"],
        status=Codes((cause["status"],)) if "status" in cause else None,
        error=cause.get("error"),
    )
