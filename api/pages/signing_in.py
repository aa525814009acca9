"""The sign-in with an API key, and the end of a session."""

from flask import current_app, g, redirect, render_template, request, url_for
from marshmallow import validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api.acts import with_line_of_session
from scheduler_app.api.auth import PAGES, refuse_beyond_limit
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.known_keys import known_keys
from scheduler_app.api.pages.access import drop_session, keep_session
from scheduler_app.api.pages.forms import takes_form, takes_query
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.services import caller, real_services
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)


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
    return render_template("sign_in.html", next=query.get("next", ""))


@blueprint.post("/sign-in")
@takes_form(SignInForm)
def begin_session(form: Loaded) -> Response | tuple[str, int]:
    assembly, keys = real_services(), known_keys()
    shown = keys.caller(form["key"].strip(), assembly.now())
    if shown is None:
        refuse_beyond_limit("sign_in.refused")
        page = render_template("sign_in.html", next=form.get("next", ""), refused=True)
        return page, 401
    if shown.stored is not None:
        keys.note_use(shown.stored, assembly.now())
    # The token is new, whatever cookie the browser sent: a session fixed by an attacker is never used.
    token = with_line_of_session(
        "signed in", shown.caller, lambda: assembly.sessions.open(shown.session_key, shown.digest)
    )
    log.info("sign_in.done", message="A person signed in", address=request.remote_addr or "")
    return keep_session(redirect(_own_path(form.get("next", "")), 303), token)


@blueprint.post("/sign-out")
@takes_form(SignOutForm)
def sign_out(form: Loaded) -> Response:
    sessions = real_services().sessions
    if g.session_token:
        with_line_of_session("signed out", caller(), lambda: sessions.close(g.session_token))
        if "everywhere" in form:
            with_line_of_session(
                "signed out everywhere", caller(), lambda: sessions.close_all(g.session_key) or None
            )
    return drop_session(to_page("sign_in"))


def _own_path(wanted: str) -> str:
    """`wanted` if it is the path of a page; the overview else, so that no link leads to another site."""
    path = wanted.partition("?")[0]
    adapter = current_app.url_map.bind("")
    # Not a page: `//host`, `/\host`, and whatever else a browser may take for another host.
    known = path.startswith("/") and not path.startswith(("//", "/\\")) and adapter.test(path, "GET")
    is_page = known and adapter.match(path, "GET")[0].startswith(f"{PAGES}.")
    return wanted if is_page else url_for(f"{PAGES}.overview")
