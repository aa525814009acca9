"""Debian's Chromium without windows, driven by Playwright, and what no page may ever do in it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Playwright, Request, expect

#: The first has the same engine without windows, menus and what belongs to them: a story takes half the CPU.
#: Some distributions have no package of it.
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
#: What a slow machine takes in the worst case, whatever a story waits for: nearly as long as pytest-timeout
#: leaves to a test.
PATIENCE_MS = 170_000
#: What Chromium would show beside pages, where nobody sees it: its address bar has a renderer in each window,
#: which takes as much CPU as half a page. Of two such lists Chromium reads the last one, so this one repeats
#: what matters of Playwright's.
WITHOUT = (
    *("WebUIOmniboxPopup", "WebUIOmniboxFullPopup", "WebUIOmniboxAimPopup"),
    *("MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding"),
)
#: What htmx reports where a page takes its own request back, because a later one replaces it (`hx-sync`): on
#: a slow machine the first is not answered yet. One that fails is reported by other words besides.
TAKEN_BACK = ("htmx:afterRequest,", "htmx:sendAbort,")
expect.set_options(timeout=PATIENCE_MS)


def launched(playwright: Playwright) -> Browser:
    """Fails where there is no Chromium: the stories must not be passed over in silence."""
    assert CHROMIUM, "there is no chromium: `make packages` installs it"
    options = ["--no-sandbox", f"--disable-features={','.join(WITHOUT)}"]
    return playwright.chromium.launch(executable_path=CHROMIUM, args=options)


@contextmanager
def watched_page(
    browser: Browser, url: str, *, provider: str | None = None, **options: object
) -> Iterator[Page]:
    """A page of a browser without history. At its end: no script failed or was refused by the policy, and
    nothing was asked of another origin than `url`'s, and `provider`'s where people sign in there."""
    origins = (f"{url}/", *([f"{provider}/"] if provider else []))
    context = browser.new_context(base_url=url, **options)  # type: ignore[arg-type]
    page, wrong = context.new_page(), list[str]()
    page.set_default_timeout(PATIENCE_MS)
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))

    def on_dialog(dialog: Dialog) -> None:
        wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def on_console(said: ConsoleMessage) -> None:
        # Chromium reports each answer of 400 and above here: those are the server's words, not a fault.
        no_fault = "Failed to load resource" in said.text or said.text.startswith(TAKEN_BACK)
        if said.type == "error" and not no_fault:
            wrong.append(f"console of {page.url}: {said.text}")

    def on_request(request: Request) -> None:
        if not request.url.startswith(("data:", *origins)):
            wrong.append(f"foreign: {request.url}")

    page.on("dialog", on_dialog)
    page.on("console", on_console)
    page.on("request", on_request)
    try:
        yield page
        assert wrong == [], wrong
    finally:
        context.close()
