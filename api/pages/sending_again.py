"""Dead letters that are sent again a page at a time: each request sends some, and its answer goes on."""

from datetime import datetime, timedelta
from typing import Any, Final

from flask import render_template, url_for
from marshmallow import validate

from scheduler_app import json_fields as fields
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages import forms
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.field_types import Cursor, Instant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.store.paging import PageRequest
from scheduler_app.usecases.deeds.events import RedriveResult

#: How many are sent again at a time.
PAGE: Final = 500
#: Requests a second that may be chosen; without one, all are sent at once.
RATES: Final = (1.0, 5.0, 20.0, 100.0)
#: No batch may begin later than this: a form cannot put dead letters off for years.
LATEST_START: Final = timedelta(days=1)


class PageByPage(InputSchema):
    """What a form says beside which dead letters it is about."""

    cursor = Cursor()
    rate = fields.Float(validate=validate.OneOf(RATES))
    start = Instant()
    so_far = fields.Integer(validate=validate.Range(0), load_default=0)


def send_page(form: Loaded, window: PageRequest, which: dict[str, Any]) -> RedriveResult:
    """Sends the next page of them; the rate goes on from page to page."""
    now, start = services().now(), form.get("start")
    begins: datetime | None = min(start, now + LATEST_START) if start else None
    return services().events.redrive_page(
        tenant(), window, now, a_second=form.get("rate"), start=begins, **which
    )


def goes_on(
    endpoint: str, done: str, form: Loaded, page: RedriveResult, *, given: View, back: tuple[str, str]
) -> str:
    """The page between two of them, and the last one, where some could not be sent. `given` says in the next
    form which ones it is about; `back` is the address of the list and its name."""
    again = {**given, "cursor": forms.cursor(page.next), "so_far": form["so_far"] + page.count}
    if "rate" in form:
        again["rate"] = form["rate"]
    if page.last_due:
        again["start"] = page.last_due.isoformat()
    return render_template(
        "sent_again.html",
        action=url_for(f"{PAGES}.{endpoint}"),
        done=done,
        count=again["so_far"],
        skipped=page.skipped,
        is_over=page.next is None,
        again={name: value for name, value in again.items() if value is not None},
        back=back,
    )
