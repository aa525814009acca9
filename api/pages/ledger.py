"""The ledger: what was owed in each hour and what became of it, as the witness found it."""

from collections.abc import Sequence
from datetime import timedelta

from flask import Response, render_template
from marshmallow import validate

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.frame import blueprint
from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.ledger import hour_shown, hours_as_csv
from scheduler_app.domain.ledger import LedgerLine
from scheduler_app.domain.stored_fields import Corrupt

#: How far back a page, and a file, go, in hours.
SPANS = {"24": "a day", "168": "a week", "720": "30 days"}


class LedgerPageQuery(forms.NoFields):
    hours = fields.String(validate=validate.OneOf(list(SPANS)), load_default="24")


@blueprint.get("/ledger", endpoint="ledger")
@forms.takes_query(LedgerPageQuery)
def ledger_page(query: Loaded) -> str:
    lines = _lines(query["hours"])
    counts = [each.account.counts for each in lines]
    return render_template(
        "ledger.html",
        rows=[hour_shown(each) for each in reversed(lines)],
        hours=query["hours"],
        spans=SPANS,
        wrong=sum(each.missing + each.unexplained for each in counts),
    )


@blueprint.get("/ledger/export", endpoint="export_ledger")
@forms.takes_query(LedgerPageQuery)
def export_ledger(query: Loaded) -> Response:
    answer = Response(hours_as_csv(_lines(query["hours"])), mimetype="text/csv")
    answer.headers["Content-Disposition"] = 'attachment; filename="ledger.csv"'
    return answer


def _lines(hours: str) -> Sequence[LedgerLine]:
    now = services().now()
    try:
        return services().ledger.hours(tenant(), now - timedelta(hours=int(hours)), now)
    except Corrupt as error:
        raise HttpProblem(409, f"a stored line of the ledger cannot be read: {error}") from None
