"""The people who sign in with an account of their company, and the command lines that they let in."""

from urllib.parse import urlencode

from flask import g, render_template, request
from marshmallow import validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.pages.provider_sign_in import lead_on
from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.services import caller, real_services, services, tenant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.command_line import CHALLENGE, read_typed_code
from scheduler_app.domain.ids import whole_id
from scheduler_app.domain.person import PersonSession


class PersonNamed(InputSchema):
    person = fields.String(required=True, validate=validate.Length(1, 64))


@blueprint.get("/people")
@forms.takes_query(forms.ActionResultQuery)
def people(query: Loaded) -> str:
    found = services().people.all(tenant(), caller())
    offered = services().sign_ins.is_offered
    return render_template("people.html", people=found, offered=offered, done=query.get("done"))


@blueprint.post("/people/end")
@forms.takes_form(PersonNamed)
def end_person(form: Loaded) -> Response:
    person_id = whole_id(tenant(), form["person"])
    ended = services().people.end_sessions(person_id, caller(), request.remote_addr or "")
    return to_page("people", done="signed out", count=ended)


class LetInQuery(InputSchema):
    """What a command line asks for: with a port it listens for the browser, else the person types a code."""

    challenge = fields.String(validate=validate.Regexp(CHALLENGE))
    port = fields.Integer(validate=validate.Range(1024, 65535))
    state = fields.String(validate=validate.Length(1, 200))


class LetInForm(LetInQuery):
    code = fields.String(validate=validate.Length(max=40))


@blueprint.get("/sign-in/command-line")
@forms.takes_query(LetInQuery)
def ask_for_command_line(query: Loaded) -> str:
    """Asks the person, so that no link of another site lets anything in."""
    _person()
    return _ask(query)


@blueprint.post("/sign-in/command-line")
@forms.takes_form(LetInForm)
def let_command_line_in(form: Loaded) -> Response | str | tuple[str, int]:
    person, now = _person(), real_services().now()
    challenge, port = form.get("challenge"), form.get("port")
    if challenge and port:
        code = real_services().sign_ins.let_in_by_code(person, challenge, now)
        query = urlencode({"code": code, "state": form.get("state", "")})
        return lead_on(f"http://127.0.0.1:{port}/?{query}", "The command line is let in.")
    typed = read_typed_code(form.get("code", ""))
    if typed is None:
        return _ask(form, "This is not what a command line shows: twelve letters and digits."), 422
    real_services().sign_ins.let_in_typed(person, typed, now)
    return render_template("command_line.html", is_let_in=True)


def _ask(given: Loaded, wrong: str = "") -> str:
    by_port = bool(given.get("challenge") and given.get("port"))
    return render_template("command_line.html", given=given, by_port=by_port, wrong=wrong)


def _person() -> PersonSession:
    """Raises Problem for who has signed in with a key: the key itself is for command lines."""
    found: PersonSession | None = g.person
    if found is None:
        raise HttpProblem(
            403, "a command line is let in by who has signed in with an account; with a key, give it the key"
        )
    return found
