"""Keys and tenants on the wire."""

from datetime import timedelta

from marshmallow import validate

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema, edit_result
from scheduler_app.api.wire.resource_fields import new_fields, output_fields, shows, view_of
from scheduler_app.domain.api_key import MAX_OVERLAP_SECONDS, KeyDraft, KeyScope, StoredKey
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.resources.access import KEY, TENANT_TABLE
from scheduler_app.domain.tenant import Tenant


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
    },
)


def key_shown(key: StoredKey) -> View:
    """A key in answers, without its secret."""
    return view_of(_KEY_SHOWN, key)


class TenantInput(InputSchema):
    """What a tenant may do; what is left out has its default."""

    class Meta(InputSchema.Meta):
        include = new_fields(TENANT_TABLE)


class TenantOutput(OmitNone):
    class Meta(OmitNone.Meta):
        include = output_fields(TENANT_TABLE)


class TenantEdited(TenantOutput):
    result = edit_result()


class TenantList(OutputSchema):
    tenants = fields.List(TenantOutput, required=True)


_TENANT_SHOWN = shows(TENANT_TABLE, {})


def tenant_shown(tenant: Tenant) -> View:
    """A tenant in answers."""
    return view_of(_TENANT_SHOWN, tenant)
