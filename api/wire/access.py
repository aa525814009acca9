"""Keys and tenants on the wire."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from marshmallow import post_load, validate

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire import field_types
from scheduler_app.api.wire.field_types import Instant
from scheduler_app.api.wire.input_schema import InputSchema, WriteQuery
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema, edit_result
from scheduler_app.api.wire.resource_fields import new_fields, output_fields, shows, view_of
from scheduler_app.domain.api_key import MAX_OVERLAP_SECONDS, KeyDraft, KeyScope, StoredKey
from scheduler_app.domain.command_line import VERIFIER
from scheduler_app.domain.deletion import Deletion
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.person import Person
from scheduler_app.domain.resource_fields import by_name
from scheduler_app.domain.resources.access import KEY, PERSON
from scheduler_app.domain.resources.tenant import TENANT_LIMITS, TENANT_TABLE, TENANT_USED
from scheduler_app.domain.tenant import NO_LIMITS, Tenant, TenantLimits, TenantState
from scheduler_app.usecases.deeds.deletions import MOST_COUNTED
from scheduler_app.usecases.deeds.tenant_imports import (
    MAX_IMPORTED_LINES,
    MAX_REFUSALS_TOLD,
    ImportCounts,
)


def counted(meaning: str) -> fields.Dict:
    """Numbers of documents."""
    return fields.Dict(
        f"{meaning}, by collection", required=True, keys=fields.String(), values=fields.Integer()
    )


class KeyInput(InputSchema):
    """What a new key may do, and until when."""

    class Meta(InputSchema.Meta):
        include = new_fields(KEY)


def key_draft(given: Loaded, tenant: str) -> KeyDraft:
    """What a body asks for, in a request of this tenant."""
    return KeyDraft(
        name=given["name"],
        scopes=frozenset(map(KeyScope, given["scopes"])),
        tenant=given.get("tenant", tenant),
        expires_at=given.get("expires_at"),
        is_installations=given.get("installation", False),
        requests_per_second=given.get("requests_per_second"),
        tags=tuple(dict.fromkeys(given.get("tags", ()))),
    )


class RotationInput(InputSchema):
    """How long the replaced key is still accepted."""

    body_optional = True

    overlap_seconds = fields.Integer(
        "How long the key that is replaced still opens, in seconds; not at all unless given",
        strict=True,
        validate=validate.Range(0, MAX_OVERLAP_SECONDS),
        load_default=0,
    )


class LeakedKey(InputSchema):
    """A key that others have seen."""

    key = fields.String("The whole key", required=True, validate=validate.Length(1, 1_000))


def overlap_of(given: Loaded) -> timedelta:
    return timedelta(seconds=given["overlap_seconds"])


class KeyOutput(OmitNone):
    class Meta(OmitNone.Meta):
        include = output_fields(KEY)


class KeyList(OutputSchema):
    keys = fields.List(KeyOutput, required=True)


_KEY_SHOWN = shows(
    KEY,
    {
        "id": lambda key: name_of(key.id),
        "scopes": lambda key: [each.value for each in KeyScope if each in key.scopes],
        "installation": lambda key: key.is_installations or None,
        "created_by": lambda key: key.created_by or None,
        "tags": lambda key: list(key.tags) or None,
    },
)


def key_shown(key: StoredKey) -> View:
    """A key in answers, without its secret."""
    return view_of(_KEY_SHOWN, key)


class LimitsInput(InputSchema):
    """How much a tenant may take of what all share."""

    class Meta(InputSchema.Meta):
        include = new_fields(TENANT_LIMITS)

    @post_load
    def limits(self, data: Loaded, **_: object) -> TenantLimits:
        return TenantLimits(**data)


class PersonOutput(OmitNone):
    class Meta(OmitNone.Meta):
        include = output_fields(PERSON)


class PersonList(OutputSchema):
    people = fields.List(PersonOutput, required=True)


_PERSON_SHOWN = shows(
    PERSON,
    {
        "id": lambda person: name_of(person.id),
        "scopes": lambda person: [each.value for each in KeyScope if each in person.scopes],
        "installation": lambda person: person.is_installations or None,
        "last_seen_from": lambda person: person.last_seen_from or None,
    },
)


def person_shown(person: Person) -> View:
    """A person in answers."""
    return view_of(_PERSON_SHOWN, person)


class SessionsEnded(OutputSchema):
    ended = fields.Integer("How many sessions there were, in browsers and on command lines", required=True)


class VerifierInput(InputSchema):
    """What a command line shows that a person has let in."""

    verifier = fields.String(
        "The verifier of which the person's browser was given the challenge (RFC 7636, `S256`)",
        required=True,
        validate=validate.Regexp(VERIFIER),
    )
    code = fields.String(
        "What the browser has brought back; not for a command line whose code the person has typed",
        validate=validate.Length(1, 200),
    )


class PersonToken(OutputSchema):
    token = fields.String("Opens the API as a key does, until it ends", required=True)
    expires_at = Instant("When it ends at the latest", required=True)
    name = fields.String("Whose it is", required=True)


class EndInput(InputSchema):
    """A sign-in that is to end."""

    token = fields.String("The token itself", required=True, validate=validate.Length(1, 200))


class TenantInput(InputSchema):
    """What a tenant may do; what is left out has its default."""

    class Meta(InputSchema.Meta):
        include = new_fields(TENANT_TABLE, {"limits": lambda: fields.Nested(LimitsInput)})

    state = fields.String(
        by_name(TENANT_TABLE)["state"].meaning,
        validate=validate.OneOf([TenantState.ACTIVE.value, TenantState.SUSPENDED.value]),
    )


class LimitsOutput(OmitNone):
    class Meta(OmitNone.Meta):
        include = output_fields(TENANT_LIMITS)


class LimitsUsed(OmitNone):
    """How much of its limits a tenant has used."""

    class Meta(OmitNone.Meta):
        include = output_fields(TENANT_USED)


class TenantOutput(OmitNone):
    class Meta(OmitNone.Meta):
        include = output_fields(
            TENANT_TABLE,
            {"limits": lambda: fields.Nested(LimitsOutput), "used": lambda: fields.Nested(LimitsUsed)},
        )


class TenantEdited(TenantOutput):
    result = edit_result()


class TenantList(OutputSchema):
    tenants = fields.List(TenantOutput, required=True)


_TENANT_SHOWN = shows(TENANT_TABLE, {"limits": lambda tenant: tenant.limits.given or None})


def tenant_asked(name: str, given: Loaded, now: datetime) -> Tenant:
    """What a body asks for; what it leaves out has its default."""
    state = TenantState(given.get("state", TenantState.ACTIVE))
    limits = given.get("limits", NO_LIMITS)
    return Tenant(name, now, state, given.get("note"), limits, given.get("retention_days"))


def tenant_shown(tenant: Tenant, used: Mapping[str, int] | None = None) -> View:
    """A tenant in answers; `used` is what it has used of its limits."""
    return view_of(_TENANT_SHOWN, tenant) | ({"used": used} if used else {})


class TenantExportQuery(InputSchema):
    secrets = fields.Boolean(
        "With the secrets, readable; only for a key of the installation. Else each line says what it lacks",
        truthy={"true"},
        falsy={"false"},
        load_default=False,
    )


class TenantImportInput(InputSchema):
    """Some lines of an export."""

    lines = fields.List(
        fields.String(),
        "Lines of the export as they stand, each as one text: its first line, and then any others, in their"
        " order",
        required=True,
        validate=validate.Length(1, MAX_IMPORTED_LINES),
    )
    active = fields.Boolean(
        "Whether schedules go on that were active when they were exported, and what waited is sent from here:"
        " only where the other installation sends nothing of the tenant any more. Else they arrive paused",
        load_default=False,
    )


class RefusedLineOutput(OmitNone):
    line = fields.Integer("Its number among the lines of the request, from 1 on", required=True)
    collection = fields.String("What it is of, if that could be read")
    name = fields.String("Its name, if that could be read")
    reason = fields.String("Why it is not taken", required=True)


class TenantImportOutput(OutputSchema):
    made = counted("How many were made")
    there = counted("How many are there already, and stay as they are")
    left_out = counted("How many stay behind, such as events that have ended")
    refused = fields.Integer("How many lines were refused", required=True)
    refusals = fields.List(
        fields.Nested(RefusedLineOutput),
        f"The first {MAX_REFUSALS_TOLD} of these",
        required=True,
    )


def import_shown(counts: ImportCounts) -> View:
    """What became of the lines."""
    return {
        "made": dict(counts.made),
        "there": dict(counts.there),
        "left_out": dict(counts.left_out),
        "refused": counts.refused,
        "refusals": [
            {
                "line": each.number,
                "collection": each.collection or None,
                "name": each.name or None,
                "reason": each.reason,
            }
            for each in counts.refusals
        ],
    }


class ConfirmQuery(WriteQuery):
    confirm = fields.String("The name of what is deleted, once more", validate=validate.Length(1, 200))


class TagDeletionQuery(ConfirmQuery):
    tag = fields.String("The tag", required=True, validate=validate.Length(1, 64))


class DeletionOutput(OmitNone):
    """A deletion of everything that belongs to a tenant, or goes with a tag."""

    id = fields.String("Its id", required=True)
    tenant = fields.String("The tenant of which something is deleted", required=True)
    tag = fields.String("The tag of what is deleted; absent: everything of the tenant is")
    state = fields.String("`deleting`; `deleted` at the end", required=True)
    counts = counted("How many documents were removed so far")
    by = fields.String("The name of the key that asked for it; absent if none")
    started_at = field_types.Instant("When it was asked for", required=True)
    ended_at = field_types.Instant("When nothing was left; absent before")


class TaggedOutput(OutputSchema):
    """What has a tag."""

    schedules = fields.Integer(
        f"Schedules with it, deleted ones included; of each are counted {MOST_COUNTED:,} at most",
        required=True,
    )
    with_other_tags = fields.Integer("Those of them that have other tags, too", required=True)
    events = fields.Integer("Their events", required=True)
    heartbeats = fields.Integer("Heartbeats with it", required=True)


class TagDeletionOutput(DeletionOutput):
    found = fields.Nested(TaggedOutput, "In a dry run: what would be deleted")


class DeletionList(OutputSchema):
    deletions = fields.List(DeletionOutput, required=True)


def deletion_shown(deletion: Deletion) -> View:
    """A deletion in answers."""
    return {
        "id": name_of(deletion.id),
        "tenant": deletion.subject,
        "tag": deletion.tag,
        "state": "deleting" if deletion.ended_at is None else "deleted",
        "counts": dict(deletion.counts),
        "by": deletion.by or None,
        "started_at": deletion.started_at,
        "ended_at": deletion.ended_at,
    }
