"""The audit: who did what to what, when, and why."""

from marshmallow import validate

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import caller, tenant
from scheduler_app.api.wire.field_types import Instant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.api.wire.paging import Listed, Paging
from scheduler_app.api.wire.schedule import EditedTimesOutput
from scheduler_app.domain.audit import AuditLine
from scheduler_app.domain.hash_chain import Verification
from scheduler_app.domain.ids import whole_id
from scheduler_app.domain.stored_fields import MAX_WHOLE
from scheduler_app.store.audit import AuditFilter
from scheduler_app.usecases.questions.audit import MOST_VERIFIED

RESOURCE = r"[a-z ]{1,40}(/.{1,250})?"


class _Which(InputSchema):
    who = fields.String("Done by the key or the person of this name", validate=validate.Length(1, 200))
    what = fields.String("What was done: `created`, `edited`, …", validate=validate.Length(1, 40))
    resource = fields.String(
        "Done to this resource, as its kind, a slash and its name (`schedule/nightly`), or to all of a kind"
        " (`schedule`)",
        validate=validate.Regexp(rf"{RESOURCE}\Z", error="must be a kind, or a kind, a slash and a name"),
    )
    since = Instant("Done at this instant or later", data_key="from")
    until = Instant("Done before this instant", data_key="to")


class AuditQuery(_Which, Paging):
    """Which lines of the audit."""


class AuditExportQuery(_Which):
    """Which lines of the audit; all of them without parameters."""


class AuditVerificationQuery(InputSchema):
    """Where to begin."""

    after = fields.Integer(
        "The number after which to go on: `next` of the answer before",
        load_default=0,
        validate=validate.Range(0, MAX_WHOLE),
    )


class AuditActor(OmitNone):
    """Who acted."""

    kind = fields.String(
        "`key`, `person`, `open` (there are no keys), `nobody` (no key that opens anything was shown),"
        " `command` (beside the API) or `scheduler` (by itself)",
        required=True,
    )
    name = fields.String("The name of the key or the person")
    key = fields.String("The id of the stored key")
    address = fields.String("Where the request came from; for a tenant not that of the installation's keys")


class AuditLineOutput(OmitNone):
    """One act. Its fields are those that it changed, with masks or digests in the place of secrets."""

    id = fields.String("The line's id", required=True)
    at = Instant("When")
    who = fields.Nested(AuditActor, "Who")
    what = fields.String("What was done: `created`, `edited`, `paused`, `deleted`, …")
    resource = fields.String("To what: its kind, a slash and its name")
    version = fields.Integer("The resource's version after it, where it has versions")
    reason = fields.String("Why, in a person's words (`Scheduler-Reason`)")
    request_id = fields.String("The request's id (`X-Request-Id`)")
    before = fields.Dict("The fields that it changed, as they were")
    after = fields.Dict("The same fields as it made them")
    secrets = fields.List(
        fields.String(),
        "Digests of the secrets before and after, where these were changed; they tell whether"
        " two are the same",
    )
    times = fields.Nested(EditedTimesOutput, "The occurrences of a schedule that it moved")
    cut = fields.Boolean("Whether values were too long to be kept; absent for no")
    number = fields.Integer("Its place in the chain; absent in its first seconds")
    hash = fields.String("The hash of the line, of which the next line's is made")
    wrong = fields.String("Why its stored document cannot be read")


class AuditPage(Listed):
    lines = fields.List(fields.Nested(AuditLineOutput), "Newest first", required=True)


class AuditVerification(OutputSchema):
    """How far the audit is as it was written."""

    ok = fields.Boolean("Whether all lines that were read are as they were written", required=True)
    lines = fields.Integer(f"How many lines are, of at most {MOST_VERIFIED} in one call", required=True)
    wrong = fields.String("What is wrong with the next line", required=True, allow_none=True)
    next = fields.Integer("Give it as `after` to go on; null at the end", required=True, allow_none=True)
    last_hash = fields.String(
        "The hash of the last line that was read: who writes it down elsewhere will know whether lines were"
        " removed from the end",
        required=True,
        allow_none=True,
    )


def audit_filter(query: Loaded) -> AuditFilter:
    """What a query asks for."""
    kind, _, name = query.get("resource", "").partition("/")
    return AuditFilter(
        who=query.get("who"),
        what=query.get("what"),
        kind=kind or None,
        resource=whole_id(tenant(), name) if name else None,
        of_installation=caller().tenant is None,
    )


def line_shown(line: AuditLine, *, to_installation: bool) -> View:
    """The fields of AuditLineOutput. A tenant is not told the address of an installation's key."""
    if line.corrupt is not None:
        return {"id": line.id, "wrong": line.corrupt}
    by, difference = line.act.by, line.change.difference
    is_hidden = by.is_installations and not to_installation
    return {
        "id": line.id,
        "at": line.at,
        "who": {
            "kind": by.kind.value,
            "name": by.name or None,
            "key": by.key or None,
            "address": None if is_hidden else by.address or None,
        },
        "what": line.what,
        "resource": f"{line.change.kind}/{line.resource_name}",
        "version": line.version or None,
        "reason": line.act.reason or None,
        "request_id": line.act.request_id or None,
        "before": dict(difference.before),
        "after": dict(difference.after),
        "secrets": list(difference.secrets) if difference.secrets else None,
        "times": difference.times,
        "cut": difference.is_cut or None,
        "number": line.number,
        "hash": line.hash,
    }


def audit_verification_shown(found: Verification, following: int | None, last_hash: str) -> View:
    """The fields of AuditVerification."""
    return {
        "ok": found.wrong is None,
        "lines": found.lines,
        "wrong": found.wrong,
        "next": following,
        "last_hash": last_hash or None,
    }
