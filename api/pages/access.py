"""Checks who may see the pages, and that a form was sent by the person who loaded it.

Without API keys: browsers on this machine, under a name of loopback. With keys: browsers that have a session,
which begins at the sign-in, with a key or with the account of a company. Every form carries a token derived
from a cookie that no other site can read.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable

from flask import Flask, Response, g, redirect, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from scheduler_app.api.auth import PAGES, is_local_name
from scheduler_app.api.known_keys import known_keys
from scheduler_app.api.narrowing import require_narrowed
from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.scopes import SAFE_METHODS, SCOPE, require_scope_of_route
from scheduler_app.api.services import EVERYBODY, admit, caller, real_services, services
from scheduler_app.config import Settings
from scheduler_app.domain.api_key import Caller, KeyScope
from scheduler_app.domain.person import PERSON_KEY, token_digest

_SESSION = "scheduler_session"
#: Names a browser that has no session, so that its forms are told from those of other sites all the same.
_VISITOR = "scheduler_visitor"
#: Of a cookie that browsers take and send by https alone, and from no other host of the domain.
_HTTPS_PREFIX = "__Host-"
TOKEN_FIELD = "form_token"  # noqa: S105 (a field's name)
_FORM = "application/x-www-form-urlencoded"
#: The fields of a form: each costs time, however short it is.
MAX_FIELDS = 1_000
OPEN_ENDPOINTS = tuple(
    f"{PAGES}.{name}"
    for name in (
        "static",
        "sign_in",
        "begin_session",
        "leave_to_sign_in",
        "finish_sign_in",
        "end_by_provider",
    )
)
#: Sent by the provider itself, with a token that it has signed in the place of a form's.
_OF_PROVIDER = f"{PAGES}.end_by_provider"
#: The scope of each form, and of each page that is only a form; all other pages need `read`.
_SCOPES = {
    # `change_selected` asks for more where what it is to do needs more.
    KeyScope.TRIGGER: (
        *("change_selected", "change_runs", "send_again", "cancel", "send_cause_again", "dismiss_cause"),
        *("ask_send_runs", "send_runs"),
        *("change_destination", "call_destination", "turn_on", "turn_off"),
        *("backfill", "ask_backfill", "cancel_backfill"),
        *("send_failure_again", "dismiss_failure", "silence_failure"),
        *("try_notification", "save_silence", "end_silence"),
    ),
    KeyScope.WRITE: (
        *("new_schedule", "edit_schedule", "new_destination", "edit_destination", "new_message"),
        *(
            "save_schedule",
            "save_edit",
            "add_destination",
            "add_destination_to",
            "revert_on_page",
            "preview_edited",
            "show_effect",
        ),
        *("test_new", "test_edited", "save_blackout", "delete_blackout"),
        *("save_destination", "save_destination_edit", "delete_destination"),
        *("send_message", "preview_delivery", "reschedule"),
        *("save_notification", "delete_notification"),
        *("save_heartbeat", "renew_heartbeat_url", "delete_heartbeat"),
        *("save_feed", "delete_feed", "new_calendar", "edit_calendar", "save_calendar"),
        *("save_calendar_edit", "delete_calendar"),
    ),
    KeyScope.READ: ("preview_when", "pick", "choose_zone"),
    KeyScope.ADMIN: (
        *("changes", "export_changes", "people", "end_person"),
        *("keys", "make_key", "replace_key", "delete_key_on_page"),
        *("tenants", "save_tenant", "set_tenant_state", "delete_tenant_on_page"),
        *("delete_tag", "delete_tag_on_page"),
    ),
}
_NEED_NO_SCOPE = (
    *OPEN_ENDPOINTS,
    *(f"{PAGES}.{name}" for name in ("sign_out", "ask_for_command_line", "let_command_line_in")),
)
SCOPES = {name: scope for scope, names in _SCOPES.items() for name in names}
#: The forms that need no scope: they begin and end a session.
_OF_SESSIONS = ("begin_session", "sign_out", "leave_to_sign_in", "end_by_provider", "let_command_line_in")


def declare_scopes(app: Flask) -> None:
    """Marks the pages and forms with the scopes that they need. Raises TypeError for a form without one."""
    for rule in app.url_map.iter_rules():
        blueprint, _, name = rule.endpoint.partition(".")
        if blueprint == PAGES and name not in _OF_SESSIONS:
            if name in SCOPES:
                setattr(app.view_functions[rule.endpoint], SCOPE, SCOPES[name])
            elif "POST" in (rule.methods or ()):
                raise TypeError(f"{rule.rule}: a form needs a scope in api/pages/access.py")


def page_access(settings: Settings) -> Callable[[], AnyResponse | None]:
    """Returns the check of a request of the pages; it answers a browser that has to sign in first."""
    needs_key = settings.needs_key

    def check() -> AnyResponse | None:
        if not needs_key and not is_local_name():
            raise HttpProblem(
                421,
                f"without API_KEYS the pages answer under localhost only, not under {request.host[:100]!r}",
            )
        g.session_token = g.person = None
        if not needs_key:
            admit(EVERYBODY)
        if request.endpoint == f"{PAGES}.static":
            return None
        token = cookie(_SESSION)
        if needs_key:
            signed_in = real_services().sessions.key_of(token) if token else None
            found = None
            if token and signed_in and signed_in[0].startswith(PERSON_KEY):
                g.person = real_services().sign_ins.of_browser(token_digest(token))
                found = real_services().sign_ins.goes_on(g.person, services().now())
            elif signed_in:
                found = known_keys().of_session(*signed_in, services().now())
            if found is None and request.endpoint not in OPEN_ENDPOINTS:
                return _to_sign_in()
            if found is not None and _is_admitted(found):
                g.session_token, g.session_key = token, signed_in and signed_in[0]
        g.is_admitted = not needs_key or g.session_token is not None
        if request.endpoint != _OF_PROVIDER:
            _check_form(g.session_token or cookie(_VISITOR))
        if request.endpoint not in _NEED_NO_SCOPE:
            require_scope_of_route()
            if caller().tags:
                if request.endpoint == f"{PAGES}.overview":
                    # It is of everything.
                    return redirect(url_for(f"{PAGES}.schedules"), 303)
                require_narrowed()
        return None

    return check


def _is_admitted(found: Caller) -> bool:
    """False where its tenant is suspended, and the browser may sign in by the key of another one. Raises
    Problem elsewhere."""
    try:
        admit(found)
    except HttpProblem:
        if request.endpoint not in OPEN_ENDPOINTS:
            raise
        return False
    return True


def keep_session(response: AnyResponse, token: str) -> AnyResponse:
    """The answer that gives a browser its session."""
    seconds = int(real_services().settings.session_hours * 3600)
    set_cookie(response, _SESSION, token, max_age=seconds)
    return response


def drop_session(response: AnyResponse) -> AnyResponse:
    """The answer that takes a browser's session away."""
    set_cookie(response, _SESSION, "", max_age=0)
    return response


def _check_form(identity: str | None) -> None:
    """Sets the token of this browser's forms; refuses a form that does not carry it."""
    if identity is None:
        identity = g.new_visitor = secrets.token_urlsafe(32)
    g.form_token = hmac.new(identity.encode(), b"form", hashlib.sha256).hexdigest()
    if request.method in SAFE_METHODS:
        return
    if request.mimetype == _FORM and request.get_data().count(b"&") >= MAX_FIELDS:
        raise HttpProblem(413, f"a form has {MAX_FIELDS:,} fields at most")
    if not hmac.compare_digest(request.form.get(TOKEN_FIELD, "").encode(), g.form_token.encode()):
        raise HttpProblem(
            403, "this form has expired: load the page again, and let your browser keep its cookies"
        )


def _to_sign_in() -> AnyResponse:
    # After the sign-in the browser returns to the page that it asked for. A form that was sent is lost: it
    # returns to the overview.
    wanted = request.full_path.rstrip("?") if request.method == "GET" else url_for(f"{PAGES}.overview")
    answer = redirect(url_for(f"{PAGES}.sign_in", next=wanted), 303)
    if request.headers.get("HX-Request"):
        # htmx would put the sign-in into a part of the page.
        answer = Response(status=204, headers={"HX-Redirect": answer.headers["Location"]})
    return answer


def name_visitor(response: Response) -> Response:
    if visitor := g.get("new_visitor"):
        set_cookie(response, _VISITOR, visitor, max_age=None)
    return response


def set_cookie(
    response: AnyResponse, name: str, value: str, *, max_age: int | None, from_links: bool = False
) -> None:
    """Gives a browser a cookie of the pages, which no script and no other site can read. `from_links`: it is
    also sent with a page to which another site leads."""
    response.set_cookie(
        _cookie_name(name),
        value,
        max_age=max_age,
        httponly=True,
        samesite="Lax" if from_links else "Strict",
        secure=_is_https(),
    )


def cookie(name: str) -> str | None:
    """What `set_cookie` gave."""
    return request.cookies.get(_cookie_name(name))


def _cookie_name(name: str) -> str:
    return f"{_HTTPS_PREFIX}{name}" if _is_https() else name


def _is_https() -> bool:
    """Whether browsers see https: by the word of a trusted proxy, or by the setting."""
    return request.is_secure or real_services().settings.public_url.startswith("https:")
