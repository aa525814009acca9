"""The sign-in with a company's account: to the provider and back, out again, and the provider's own word that
a sign-in is over.

A browser comes back by a link of the provider's site, and would not send the cookie of its new session along
if it were redirected then: browsers count that as the other site's doing. So the answer is a page of ours,
which leads on by itself. The same page leads away: a form may not end at another site (`frame.POLICY`).
"""

from typing import Final
from urllib.parse import quote, unquote

from flask import current_app, render_template, request, url_for
from marshmallow import validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api.auth import PAGES, refuse_beyond_limit
from scheduler_app.api.blueprint import accepting_anything
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages.access import cookie, drop_session, keep_session, set_cookie
from scheduler_app.api.pages.forms import takes_form
from scheduler_app.api.pages.frame import blueprint
from scheduler_app.api.services import real_services
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.errors import NotAuthorized
from scheduler_app.domain.person import PersonSession
from scheduler_app.domain.sign_in_flow import Flow, ProviderAway, SignInRefused
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

#: Ties the provider's answer to the browser that has left to it.
_FLOW = "scheduler_flow"
_FLOW_SECONDS: Final = 600
#: A longer address of the page asked for is forgotten: a cookie has 4 KiB.
_MAX_NEXT = 1_000
_MAX_CODE = 4_096
_MAX_LOGOUT_TOKEN = 8_192


class LeaveForm(InputSchema):
    next = fields.String(validate=validate.Length(max=2_000))


@blueprint.post("/sign-in/provider")
@takes_form(LeaveForm)
def leave_to_sign_in(form: Loaded) -> Response | tuple[str, int]:
    """Sends the browser to the provider."""
    flow, wanted = Flow.begin(), form.get("next", "")
    if not real_services().sign_ins.is_offered:
        return _sign_in_again("refused", "This scheduler has no provider: sign in with a key.", 404)
    try:
        url = real_services().sign_ins.begin(flow)
    except ProviderAway as error:
        return _provider_away(error)
    answer = lead_on(url, "You go on to the sign-in of your company.")
    kept = f"{flow.secret}.{quote(wanted if len(wanted) <= _MAX_NEXT else '', safe='')}"
    set_cookie(answer, _FLOW, kept, max_age=_FLOW_SECONDS, from_links=True)
    return answer


@blueprint.get("/sign-in/callback")
@accepting_anything
def finish_sign_in() -> Response | tuple[str, int]:
    """Where the provider sends the browser back, with what providers add of their own."""
    secret, _, wanted = (cookie(_FLOW) or "").partition(".")
    flow = Flow(secret)
    state, code = (request.args.get(name, "") for name in ("state", "code"))
    if not secret or not flow.is_state(state):
        # No attempt at somebody's account: a page that was loaded again, or a link of another site.
        return _sign_in_again(
            "refused", "This sign-in was begun elsewhere or has expired: begin it again.", 400
        )
    answer: Response | tuple[str, int]
    address = request.remote_addr or ""
    try:
        _check_issuer()
        if "error" in request.args or not 0 < len(code) <= _MAX_CODE:
            raise SignInRefused("your company's sign-in has sent you back without letting you in")
        _, token = real_services().sign_ins.finish(code, flow, address, real_services().now())
    except (SignInRefused, NotAuthorized) as error:
        refuse_beyond_limit("sign_in.refused", "sign-in", str(error))
        sentence = f"You are not let in: {error}. Ask whoever runs this scheduler, or sign in with a key."
        answer = _sign_in_again("refused", sentence, 403)
    except ProviderAway as error:
        answer = _provider_away(error)
    else:
        answer = keep_session(lead_on(own_path(unquote(wanted)), "You are signed in."), token)
    done = current_app.make_response(answer)
    set_cookie(done, _FLOW, "", max_age=0, from_links=True)
    return done


@blueprint.post("/sign-in/back-channel")
@accepting_anything
def end_by_provider() -> tuple[str, int]:
    """The provider says that a sign-in is over (OpenID Connect Back-Channel Logout)."""
    services, token = real_services(), request.form.get("logout_token", "")
    if not services.sign_ins.is_offered or not 0 < len(token) <= _MAX_LOGOUT_TOKEN:
        return "there is no provider here, or no logout_token in this request", 400
    try:
        services.sign_ins.ended_by_provider(token, services.now())
    except SignInRefused as error:
        refuse_beyond_limit("sign_in.logout_refused", "logout token")
        return str(error), 400
    except ProviderAway as error:
        return f"the keys of the provider cannot be read: {error}", 503
    return "", 200


def signed_out(session: PersonSession, *, everywhere: bool) -> Response:
    """Ends a person's session here, and leads the browser to where it ends at the provider."""
    sign_ins, address = real_services().sign_ins, request.remote_addr or ""
    url = sign_ins.sign_out_url(session)
    (sign_ins.end_all if everywhere else sign_ins.end)(session, address)
    here = url_for(f"{PAGES}.sign_in")
    return drop_session(lead_on(url or here, "You are signed out here."))


def lead_on(url: str, sentence: str) -> Response:
    """A page that leads on by itself."""
    return current_app.make_response(render_template("lead_on.html", url=url, sentence=sentence))


def own_path(wanted: str) -> str:
    """`wanted` if it is the path of a page; the overview else, so that no link leads to another site."""
    path = wanted.partition("?")[0]
    adapter = current_app.url_map.bind("")
    # Not a page: `//host`, `/\host`, and whatever else a browser may take for another host.
    known = path.startswith("/") and not path.startswith(("//", "/\\")) and adapter.test(path, "GET")
    is_page = known and adapter.match(path, "GET")[0].startswith(f"{PAGES}.")
    return wanted if is_page else url_for(f"{PAGES}.overview")


def _check_issuer() -> None:
    """Where the answer names its issuer (RFC 9207), it must be the one that was asked."""
    issuer = request.args.get("iss")
    if issuer is not None and issuer != real_services().settings.oidc_issuer:
        raise SignInRefused("another provider has answered than the one that was asked")


def _provider_away(error: ProviderAway) -> tuple[str, int]:
    log.warning("oidc.away", message="The sign-in provider cannot be used", error=str(error))
    sentence = "The sign-in of your company does not answer: try again in a minute, or sign in with a key."
    return _sign_in_again("provider-away", sentence, 503)


def _sign_in_again(test: str, sentence: str, status: int) -> tuple[str, int]:
    shown = render_template(
        "sign_in.html", next="", offered=real_services().sign_ins.is_offered, notice=(test, sentence)
    )
    return shown, status
