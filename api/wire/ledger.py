"""The ledger: what was owed in each hour, and what became of it."""

import csv
import io
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from marshmallow import validate

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.field_types import Instant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.domain.hash_chain import Verification
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.ledger import COUNTED, Account, LedgerLine
from scheduler_app.domain.stored_fields import MAX_WHOLE
from scheduler_app.usecases.questions.ledger import MOST_HOURS, MOST_HOURS_OF_TAG, MOST_VERIFIED, HourOfTag

DAY: Final = timedelta(days=1)


class LedgerQuery(InputSchema):
    """Which hours to show."""

    start = Instant("The first hour; default: a day before `to`", data_key="from")
    end = Instant(
        f"Up to when; default: now. At most {MOST_HOURS} hours after `from`, for a tag {MOST_HOURS_OF_TAG}",
        data_key="to",
    )
    tag = fields.String(
        "What was owed to the schedules with this tag, counted anew: such hours have no line and no hash."
        " Left out are hours that have not been over for ten minutes, and those whose events may be removed",
        validate=validate.Length(1, 200),
    )
    format = fields.String(
        "`csv` for a file with a line for each hour",
        load_default="json",
        validate=validate.OneOf(("json", "csv")),
    )


class LedgerHour(OmitNone):
    """What was owed in an hour, and what became of it."""

    hour = Instant("When it began", required=True)
    owed = fields.Integer("Occurrences that rules named, and events that were asked for", required=True)
    completed = fields.Integer("Those that succeeded", required=True)
    error = fields.Integer("Dead letters", required=True)
    cancelled = fields.Integer("Withdrawn", required=True)
    expired = fields.Integer("Too late to be sent", required=True)
    skipped = fields.Integer("Left out by a policy", required=True)
    held = fields.Integer("Not ended, and held by a kill switch", required=True)
    open = fields.Integer("Not ended when the line was written; a later line tells of them", required=True)
    missing = fields.Integer("Owed, and there is no event: nobody knows of them", required=True)
    unexplained = fields.Integer("Events that no rule and no request explains", required=True)
    unjudged = fields.Integer("Schedules whose rule the witness cannot evaluate", required=True)
    missing_ids = fields.List(fields.String(), "The first ids of missing events")
    unexplained_ids = fields.List(fields.String(), "The first ids of unexplained events")
    unjudged_schedules = fields.List(fields.String(), "The first schedules that were not judged, and why")
    line = fields.Integer("The number of its line")
    turn = fields.Integer("Which line of this hour it is: later ones follow as events end")
    written_at = Instant("When the line was written")
    hash = fields.String("SHA-256 of the line and of the hash of the line before")


class LedgerOutput(OutputSchema):
    """The hours that were asked for."""

    hours = fields.List(LedgerHour, "In their order; an hour without a line is not among them", required=True)


class VerificationQuery(InputSchema):
    """Where to go on."""

    after = fields.Integer(
        "The `next` of the answer before; without it the first line is the first",
        load_default=0,
        validate=validate.Range(0, MAX_WHOLE),
    )


class LedgerVerification(OmitNone):
    """How far the ledger is as it was written."""

    lines = fields.Integer("How many of the lines that were read are as they were written", required=True)
    ok = fields.Boolean("Whether all are", required=True)
    wrong = fields.String("What is wrong with the line after these")
    next = fields.Integer(f"Where to go on: {MOST_VERIFIED} lines are read at a time; absent at the end")


def hours_asked(query: Loaded, now: datetime) -> tuple[datetime, datetime]:
    """The stretch of time that a LedgerQuery asks for."""
    end: datetime = query.get("end", now)
    return query.get("start", end - DAY), end


def hour_shown(found: LedgerLine | HourOfTag) -> View:
    """The fields of LedgerHour."""
    shown: View = {"hour": found.hour, **found.account.counts.as_dict(), **_ids_shown(found.account)}
    if isinstance(found, LedgerLine):
        shown |= {
            "line": found.number,
            "turn": found.turn,
            "written_at": found.written_at,
            "hash": found.hash,
        }
    return shown


def _ids_shown(account: Account) -> View:
    """As their tenant knows them."""
    named = {
        "missing_ids": account.missing,
        "unexplained_ids": account.unexplained,
        "unjudged_schedules": account.unjudged,
    }
    return {field: list(map(name_of, ids)) or None for field, ids in named.items()}


def hours_as_csv(found: Sequence[LedgerLine | HourOfTag]) -> str:
    """A line for each hour, below the names of the columns."""
    written = io.StringIO()
    rows = csv.writer(written)
    rows.writerow(("hour", *COUNTED, "hash"))
    for each in found:
        counts = each.account.counts.as_dict()
        hash_ = each.hash if isinstance(each, LedgerLine) else ""
        rows.writerow((shown_instant(each.hour), *(counts[name] for name in COUNTED), hash_))
    return written.getvalue()


def verification_shown(found: Verification, following: int | None) -> View:
    """The fields of LedgerVerification."""
    return {"lines": found.lines, "ok": found.wrong is None, "wrong": found.wrong, "next": following}
