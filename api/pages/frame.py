"""The frame of every page: the blueprint, security headers, and errors as pages."""

import gzip
import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, g, json, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from scheduler_app.api.auth import PAGES, is_own_origin
from scheduler_app.api.json_types import View
from scheduler_app.api.pages import formatting, times
from scheduler_app.api.pages.access import name_visitor
from scheduler_app.api.pages.places import (
    KEYS,
    NEW_SCHEDULE,
    PLACES,
    ListedPage,
    help_of,
    manual_address,
    place_at,
)
from scheduler_app.api.pages.policy_words import choice_words, label_of
from scheduler_app.api.problems import PROBLEM_JSON
from scheduler_app.api.scopes import may
from scheduler_app.api.services import caller, services, tenant
from scheduler_app.api.wire.event import receiver_shown
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.kill_switch import KillSwitch, Scope
from scheduler_app.store.faults import STORE_FAULTS
from scheduler_app.store.stops import CorruptKillSwitch
from scheduler_app.usecases.questions.open_failures import MOST_COUNTED

#: Everything from this host, nothing inline. The signs of states are `data:` images in the stylesheet.
POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'none'"
)
ASSETS_SECONDS = 3600
#: What a browser says of a request (`Sec-Fetch-Site`) that the person or a page of ours has caused.
ASKED_BY_PEOPLE = {"none", "same-origin"}


blueprint = Blueprint(
    PAGES,
    __name__,
    root_path=str(Path(__file__).parent),
    template_folder="templates",
    static_folder="static",
    static_url_path="/assets",
)
blueprint.after_request(name_visitor)
for show in (
    *(*formatting.FILTERS, *times.TIME_FILTERS),
    *(name_of, receiver_shown, label_of, choice_words, formatting.run_mark),
):
    blueprint.add_app_template_filter(show)


def to_page(endpoint: str, **query: Any) -> AnyResponse:
    """Sends the browser to a page, after what it has done."""
    return redirect(url_for(f"{PAGES}.{endpoint}", **query), 303)


@blueprint.context_processor
def of_every_page() -> View:
    place, page = place_at(request.path)
    return {
        "five_places": PLACES,
        "is_listed": is_listed,
        "place": place,
        "page": page,
        "help_address": manual_address(help_of(request.endpoint or "", page)),
        "keys": KEYS,
        "key_for_writers": NEW_SCHEDULE,
        "now": services().now(),
        "viewer_zone": times.viewer_zone(),
        "form_token": g.get("form_token", ""),
        "signed_in": g.get("session_token") is not None,
        "key_name": caller().name or "",
        "is_person": g.get("person") is not None,
        # Forms offer what others have named; a key with tags writes by the API.
        "may_write": may(KeyScope.WRITE) and not caller().tags,
        "may_trigger": may(KeyScope.TRIGGER),
        "kill_switches_on": kill_switches_on,
        "open_failures": open_failures,
    }


def is_listed(page: ListedPage) -> bool:
    """Whether the navigation leads whoever asks to this page."""
    if page.is_form or page.shown_to == "everybody":
        return not page.is_form
    return may(KeyScope.ADMIN) and (page.shown_to == "admins" or caller().tenant is None)


def kill_switches_on() -> list[KillSwitch | CorruptKillSwitch]:
    """The kill switches that are on, for people who may see the pages."""
    if not g.get("is_admitted"):
        return []
    try:
        found = services().kill_switch_notice.of(tenant())
    except STORE_FAULTS:
        return []  # the page itself says so
    tags = caller().tags
    return [each for each in found if not tags or each.target.scope is Scope.ALL or each.target.name in tags]


def open_failures() -> str:
    """How many failures are open, for people who may see them; empty where none is."""
    if not g.get("is_admitted") or caller().tags or not may(KeyScope.READ):
        return ""
    try:
        count = services().open_failures.count(tenant())
    except STORE_FAULTS:
        return ""  # the page itself says so
    return f"{MOST_COUNTED - 1}+" if count >= MOST_COUNTED else str(count or "")


@blueprint.after_request
def finish(response: Response) -> Response:
    if response.mimetype == PROBLEM_JSON:
        response = _as_page(response)
    elif request.method == "GET" and response.status_code == 200 and not response.direct_passthrough:
        # Parts that pages load again and again are sent only where they differ.
        response.set_etag(hashlib.sha256(response.get_data()).hexdigest()[:32], weak=True)
        response.make_conditional(request)
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "same-origin"
    if request.endpoint == f"{PAGES}.static":
        response.headers["Cache-Control"] = f"public, max-age={ASSETS_SECONDS}"
    else:
        response.headers["Cache-Control"] = "no-store"
    _compress(response)
    return response


def _compress(response: Response) -> None:
    """Compresses files, and the pages that no other site can have asked for. From the length of a compressed
    page, an attacker who can put text into it and watch the network could guess its form token."""
    is_asset = request.endpoint == f"{PAGES}.static"
    if is_asset:
        response.vary.add("Accept-Encoding")
    elif response.is_streamed or not _is_asked_by_people():
        return
    if response.status_code != 200 or request.method == "HEAD" or request.accept_encodings["gzip"] <= 0:
        return
    response.direct_passthrough = False
    content = response.get_data()
    response.set_data(_gzipped_asset(content) if is_asset else gzip.compress(content, 4, mtime=0))
    response.headers["Content-Encoding"] = "gzip"
    if etag := response.get_etag()[0]:
        # A strong one would promise the same bytes to those who take no gzip.
        response.set_etag(etag, weak=True)


def _is_asked_by_people() -> bool:
    """Over plain HTTP from another machine, browsers leave Sec-Fetch-Site out. A page of another site can
    leave the Referer out, too, but it can never send one of ours."""
    site = request.headers.get("Sec-Fetch-Site")
    return site in ASKED_BY_PEOPLE if site is not None else is_own_origin(request.headers.get("Referer", ""))


@lru_cache(maxsize=32)
def _gzipped_asset(content: bytes) -> bytes:
    """There are fewer files than are kept."""
    return gzip.compress(content, mtime=0)


def _as_page(problem: Response) -> Response:
    """The same error for people. `api.problems` has decided on its status and its words."""
    shown = render_template("problem.html", problem=json.loads(problem.get_data()))
    page = Response(shown, status=problem.status_code, mimetype="text/html")
    for name in ("Retry-After", "Allow"):
        if name in problem.headers:
            page.headers[name] = problem.headers[name]
    return page
