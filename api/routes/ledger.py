"""/api/v1/ledger: what was owed in each hour and what became of it, as the witness found it."""

from collections.abc import Sequence

from flask import Response

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.ledger import (
    LedgerOutput,
    LedgerQuery,
    LedgerVerification,
    VerificationQuery,
    hour_shown,
    hours_as_csv,
    hours_asked,
    verification_shown,
)
from scheduler_app.domain.errors import Conflict
from scheduler_app.domain.ledger import LedgerLine
from scheduler_app.domain.stored_fields import Corrupt
from scheduler_app.usecases.questions.ledger import HourOfTag

ledger_blueprint = ApiBlueprint(
    "ledger", "/api/v1/ledger", "What was owed in each hour, and what became of it"
)


@ledger_blueprint.route("", methods=["GET"])
@ledger_blueprint.arguments(LedgerQuery, location="query")
@ledger_blueprint.response(200, LedgerOutput)
def ledger(query: Loaded) -> View | Response:
    """Show what was owed in each hour, and what became of it

    The witness writes an hour's line ten minutes after its end, and another one when events of it end later.
    It finds out by an evaluator of its own when rules fire: `missing` events should be there and are not,
    `unexplained` ones should not be there.
    """
    assembly = services()
    now = assembly.now()
    since, until = hours_asked(query, now)
    try:
        found: Sequence[LedgerLine | HourOfTag] = (
            assembly.ledger.hours_of_tag(tenant(), query["tag"], since, until, now)
            if "tag" in query
            else assembly.ledger.hours(tenant(), since, until)
        )
    except Corrupt as error:
        raise Conflict(f"a stored line of the ledger cannot be read: {error}") from None
    if query["format"] == "csv":
        answer = Response(hours_as_csv(found), mimetype="text/csv")
        answer.headers["Content-Disposition"] = 'attachment; filename="ledger.csv"'
        return answer
    return {"hours": list(map(hour_shown, found))}


@ledger_blueprint.route("/verification", methods=["GET"])
@ledger_blueprint.arguments(VerificationQuery, location="query")
@ledger_blueprint.response(200, LedgerVerification)
def verify_ledger(query: Loaded) -> View:
    """Read the ledger from its beginning, and tell whether each line is as it was written"""
    try:
        return verification_shown(*services().ledger.verify(tenant(), query["after"]))
    except Corrupt as error:
        raise Conflict(f"a stored line of the ledger cannot be read: {error}") from None
