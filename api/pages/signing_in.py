"""The sign-in with an API key, and the end of a session."""

from flask import g, redirect, render_template, request
from marshmallow import validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api.acts import with_line_of_session
from scheduler_app.api.auth import refuse_beyond_limit
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.known_keys import known_keys
from scheduler_app.api.pages.access import drop_session, keep_session
from scheduler_app.api.pages.forms import takes_form, takes_query
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.pages.provider_sign_in import own_path, signed_out
from scheduler_app.api.services import caller, real_services
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.usecases.deeds.sign_in_lines import note_sign_in


class SignInQuery(InputSchema):
    next = fields.String(validate=validate.Length(max=2_000))


class SignInForm(SignInQuery):
    key = fields.String(required=True, validate=validate.Length(max=1_000))


class SignOutForm(InputSchema):
    everywhere = fields.String(validate=validate.Equal("yes"))


@blueprint.get("/sign-in")
@takes_query(SignInQuery)
def sign_in(query: Loaded) -> Response | str:
    if not real_services().settings.needs_key or g.session_token:
        return to_page("overview")
    return _page(query)


@blueprint.post("/sign-in")
@takes_form(SignInForm)
def begin_session(form: Loaded) -> Response | tuple[str, int]:
    assembly, keys = real_services(), known_keys()
    shown = keys.caller(form["key"].strip(), assembly.now())
    if shown is None:
        refuse_beyond_limit("sign_in.refused")
        return _page(
            form,
            ("refused", "This key does not open anything here. Whoever runs this scheduler gives out keys."),
        ), 401
    if shown.stored is not None:
        keys.note_use(shown.stored, assembly.now())
    # The token is new, whatever cookie the browser sent: a session fixed by an attacker is never used.
    token = with_line_of_session(
        "signed in", shown.caller, lambda: assembly.sessions.open(shown.session_key, shown.digest)
    )
    name, tenant = shown.caller.name or "a key", shown.caller.tenant
    note_sign_in("sign_in.done", who=name, tenant=tenant, address=request.remote_addr or "")
    return keep_session(redirect(own_path(form.get("next", "")), 303), token)


@blueprint.post("/sign-out")
@takes_form(SignOutForm)
def sign_out(form: Loaded) -> Response:
    sessions = real_services().sessions
    if g.person is not None:
        return signed_out(g.person, everywhere="everywhere" in form)
    if g.session_token:
        note_sign_in("sign_in.ended", who=caller().name or "a key", address=request.remote_addr or "")
        with_line_of_session("signed out", caller(), lambda: sessions.close(g.session_token))
        if "everywhere" in form:
            with_line_of_session(
                "signed out everywhere", caller(), lambda: sessions.close_all(g.session_key) or None
            )
    return drop_session(to_page("sign_in"))


def _page(given: Loaded, notice: tuple[str, str] | None = None) -> str:
    offered = real_services().sign_ins.is_offered
    return render_template("sign_in.html", next=given.get("next", ""), offered=offered, notice=notice)
