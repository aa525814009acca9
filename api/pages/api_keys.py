"""Keys of the API: made, replaced and deleted. A key itself stands in the answer to its own form alone."""

import secrets
from datetime import timedelta
from typing import Final

from flask import g, render_template
from marshmallow import ValidationError, validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.problems import HttpProblem, problem_of
from scheduler_app.api.services import caller, real_services, services, tenant
from scheduler_app.api.wire.access import KeyInput, key_draft, key_shown
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.api_key import MAX_OVERLAP_SECONDS, KeyScope, StoredKey, new_key_id
from scheduler_app.domain.errors import Conflict, InvalidField, NotAuthorized, NotFound
from scheduler_app.domain.ids import WholeId, name_of, whole_id

#: What each scope allows, in words for people.
MAY: Final = {
    KeyScope.READ: "look",
    KeyScope.TRIGGER: "run, pause and send again",
    KeyScope.WRITE: "change schedules and the like",
    KeyScope.ADMIN: "manage keys and tenants",
}
#: How long a replaced key still opens.
OVERLAPS: Final = {0: "at once", 3_600: "in an hour", 86_400: "in a day", 604_800: "in a week"}
LONGEST_DAYS: Final = 3_650
#: A random text of each page that has the form: a form that is sent twice makes one key.
_ONCE: Final = validate.Length(1, 64)


class KeyForm(InputSchema):
    name = fields.String(validate=validate.Length(max=200))
    scopes = fields.List(
        fields.String(validate=validate.OneOf([each.value for each in KeyScope])), load_default=[]
    )
    tags = fields.String(validate=validate.Length(max=2_000))
    days = fields.Float(validate=validate.Range(0, LONGEST_DAYS, min_inclusive=False))
    installation = fields.String(validate=validate.Equal("yes"))
    once = fields.String(validate=_ONCE)


class RotationForm(InputSchema):
    key_id = fields.String(required=True, validate=validate.Length(1, 64))
    overlap = fields.Integer(validate=validate.Range(0, MAX_OVERLAP_SECONDS), load_default=0)
    once = fields.String(required=True, validate=_ONCE)


class KeyDeletionForm(InputSchema):
    key_id = fields.String(required=True, validate=validate.Length(1, 64))


@blueprint.get("/keys")
@forms.takes_query(forms.ActionResultQuery)
def keys(query: Loaded) -> str:
    return _page({"scopes": [KeyScope.READ.value]}, done=query.get("done"))


@blueprint.post("/keys")
@forms.takes_form(KeyForm)
def make_key(form: Loaded) -> Response | str | tuple[str, int]:
    seed, assembly = forms.seed_of(form), services()
    if seed is not None and _is_made(whole_id(tenant(), new_key_id(seed))):
        # Who loads the answer again sends the form again.
        return to_page("keys", done="created")
    try:
        draft = key_draft(KeyInput().load(_given(form)), tenant())
        key, text = assembly.keys.create(draft, caller(), assembly.now(), seed)
    except (ValidationError, InvalidField, Conflict, NotAuthorized) as error:
        problem = problem_of(error)
        return _page(form, problem), problem.status
    return _key_page(key, text)


@blueprint.post("/keys/rotate")
@forms.takes_form(RotationForm)
def replace_key(form: Loaded) -> Response | str:
    assembly, seed = services(), forms.seed_of(form)
    key_id = whole_id(tenant(), form["key_id"])
    if assembly.keys.find(key_id, caller()).request_seed == seed:
        return to_page("keys", done="saved")
    key, text = assembly.keys.rotate(
        key_id, timedelta(seconds=form["overlap"]), caller(), assembly.now(), seed
    )
    return _key_page(key, text)


@blueprint.post("/keys/delete")
@forms.takes_form(KeyDeletionForm)
def delete_key_on_page(form: Loaded) -> Response:
    services().keys.revoke(whole_id(tenant(), form["key_id"]), caller())
    return to_page("keys", done="deleted")


def _is_made(key_id: WholeId) -> bool:
    try:
        services().keys.find(key_id, caller())
    except NotFound:
        return False
    return True


def _given(form: Loaded) -> View:
    """The body of the API that means the same."""
    given: View = {"name": form.get("name", "").strip(), "scopes": form["scopes"]}
    if tags := forms.listed(form.get("tags", "")):
        given["tags"] = tags
    if "days" in form:
        given["expires_at"] = (services().now() + timedelta(days=form["days"])).isoformat()
    if "installation" in form:
        given["installation"] = True
    return given


def _key_page(key: StoredKey, text: str) -> str:
    return render_template("key.html", key=key_shown(key), text=text)


def _page(values: Loaded, problem: HttpProblem | None = None, done: str | None = None) -> str:
    is_operator = caller().tenant is None
    errors = forms.errors_by_field(problem, {"expires_at": "days"})
    return render_template(
        "keys.html",
        rows=[key_shown(each) for each in services().keys.all(tenant(), caller())],
        of_settings=real_services().settings.keys if is_operator else (),
        own=name_of(g.session_key) if g.get("session_key") else None,
        may=MAY,
        scopes=[each for each in KeyScope if each in caller().scopes],
        overlaps=OVERLAPS,
        is_operator=is_operator,
        once=secrets.token_hex(16),
        values=values,
        errors=errors,
        others=forms.other_errors(errors, {"name", "tags", "days", "scopes"}),
        done=done,
    )
