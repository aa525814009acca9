"""The pages for browsers, over what the run has left."""

import html
import re
from typing import Final

from tests.golden.product import ADMIN
from tests.golden.recording import Recording

_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
_PATHS: Final = (
    "/",
    "/schedules",
    "/schedules?tag=nightly",
    "/schedules/full",
    "/schedules/full/edit",
    "/schedules/full/backfill",
    "/schedules/full/calendar.ics",
    "/schedules/none",
    "/new-schedule",
    "/calendar-feeds",
    "/events?state=error",
    "/events/send-again?state=error",
    "/events/export?state=error",
    "/events/exhausts-1-20400305T130000Z",
    "/dead-letters",
    "/messages",
    "/new-message",
    "/destinations",
    "/new-destination",
    "/destinations/shop/edit",
    "/calendars",
    "/new-calendar",
    "/calendars/own/edit",
    "/calendar",
    "/forecast",
    "/go?to=full",
    "/stops",
    "/processes",
    "/overview/now-and-next",
    "/failures",
    "/notifications",
    "/heartbeats",
    "/failures/none",
    "/tags?tag=nightly",
    "/tags/delete?tag=nightly",
    "/changes?resource=destination",
    "/changes/export?who=nobody",
    "/ledger",
    "/ledger/export",
    "/keys",
    "/tenants",
    "/people",
    "/sign-in/callback?state=none",
    "/sign-in/command-line",
    "/you",
    "/assets/page.css",
    "/static/none",
    "/swagger-ui",
    "/swagger-ui/",
    "/swagger-ui/start.js",
    "/swagger/index.html",
)


def record(run: Recording) -> None:
    run.topic = "pages"
    ask = run.ask
    ask("GET", "/", key=None)
    page = ask("GET", "/sign-in", key=None).text
    token = re.search(r'name="form_token" value="([0-9a-f]{64})"', page)
    assert token is not None
    ask("POST", "/sign-in", key=None, headers=_FORM, data="key=x")
    ask(
        "POST", "/sign-in", key=None, headers=_FORM, data=f"form_token={token[1]}&key={ADMIN}&next=/schedules"
    )
    for path in _PATHS:
        page = ask("GET", path, key=None).text
        if export := re.search(r'"(/dead-letters/export\?[^"]*)"', page):
            ask("GET", html.unescape(export[1]), key=None)
    # A digest of the session stays in the database.
    run.product.client.delete_cookie("scheduler_session")
