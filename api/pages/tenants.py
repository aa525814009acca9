"""Tenants: made, suspended, limited and deleted, by who runs the installation.

The form follows the tables of the API: a limit that a tenant may have is a field here.
"""

from typing import Final

from flask import render_template
from marshmallow import ValidationError, validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.problems import HttpProblem, problem_of
from scheduler_app.api.services import caller, require_installation, services
from scheduler_app.api.wire.access import LimitsInput, TenantInput, tenant_asked, tenant_shown
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.errors import Conflict, InvalidField
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.tenant import TenantState

_LONGEST: Final = 2_000
#: The fields of the form beside the name: those of a tenant, and its limits under their own names.
_LIMITS: Final = LimitsInput().load_fields
_OWN: Final = {
    name: field for name, field in TenantInput().load_fields.items() if name not in ("state", "limits")
}
_SETTINGS: Final = {name: forms.setting(field) for name, field in (_OWN | _LIMITS).items()}


class TenantForm(InputSchema):
    class Meta(InputSchema.Meta):
        include = forms.text_fields(dict.fromkeys(("name", *_SETTINGS), _LONGEST))


class TenantStateForm(InputSchema):
    name = fields.String(required=True, validate=validate.Length(1, 64))
    state = fields.String(
        required=True, validate=validate.OneOf([TenantState.ACTIVE.value, TenantState.SUSPENDED.value])
    )


class TenantDeletionForm(InputSchema):
    name = fields.String(required=True, validate=validate.Length(1, 64))
    confirm = fields.String(validate=validate.Length(max=64))


class TenantsQuery(forms.ActionResultQuery):
    edit = fields.String(validate=validate.Length(1, 64))


@blueprint.get("/tenants")
@forms.takes_query(TenantsQuery)
def tenants(query: Loaded) -> str:
    require_installation()
    values: Loaded = {}
    if "edit" in query:
        shown = tenant_shown(services().tenants.find(query["edit"]))
        limits = shown.get("limits")
        found = shown | (limits if isinstance(limits, dict) else {})
        values = {name: forms.text_of(found[name]) for name in ("name", *_SETTINGS) if name in found}
    return _page(values, done=query.get("done"))


@blueprint.post("/tenants")
@forms.takes_form(TenantForm)
def save_tenant(form: Loaded) -> Response | tuple[str, int]:
    """Makes one, or sets all of it but its state."""
    require_installation()
    name = form.get("name", "").strip()
    known = services().tenants.known(name)
    try:
        given = TenantInput().load(_given(form)) | {"state": known.state if known else TenantState.ACTIVE}
        services().tenants.put(tenant_asked(name, given, services().now()))
    except (ValidationError, InvalidField, Conflict) as error:
        problem = problem_of(error)
        return _page(form, problem), problem.status
    return to_page("tenants", done="saved")


@blueprint.post("/tenants/state")
@forms.takes_form(TenantStateForm)
def set_tenant_state(form: Loaded) -> Response:
    """Suspends one, or ends that."""
    require_installation()
    shown = tenant_shown(services().tenants.find(form["name"]))
    body = {name: shown[name] for name in ("limits", *_OWN) if shown.get(name) is not None}
    given = TenantInput().load(body | {"state": form["state"]})
    services().tenants.put(tenant_asked(form["name"], given, services().now()))
    return to_page("tenants", done="saved")


@blueprint.post("/tenants/delete")
@forms.takes_form(TenantDeletionForm)
def delete_tenant_on_page(form: Loaded) -> Response:
    require_installation()
    services().tenants.delete(form["name"], form.get("confirm"), caller(), services().now())
    return to_page("tenants", done="deleted")


def _given(form: Loaded) -> View:
    """The body of the API that means the same."""
    texts = {name: text for name in _SETTINGS if (text := form.get(name, "").strip())}
    given: View = {name: forms.value_of(_OWN[name], texts[name]) for name in _OWN if name in texts}
    limits = {name: forms.value_of(_LIMITS[name], texts[name]) for name in _LIMITS if name in texts}
    return given | ({"limits": limits} if limits else {})


def _page(values: Loaded, problem: HttpProblem | None = None, done: str | None = None) -> str:
    names = {f"limits/{name}": name for name in _LIMITS}
    errors = forms.errors_by_field(problem, names)
    found = services().tenants.all()
    used = services().tenants.used(found, services().now())
    return render_template(
        "tenants.html",
        rows=[tenant_shown(each, used[each.name]) for each in found],
        default=TENANT,
        settings=_SETTINGS,
        limits=list(_LIMITS),
        values=values,
        errors=errors,
        others=forms.other_errors(errors, {"name", *_SETTINGS}),
        done=done,
    )
