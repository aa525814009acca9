"""Debian's Chromium, driven by Playwright, and what no page may ever do in it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Playwright

CHROMIUM = shutil.which("chromium")


def launched(playwright: Playwright) -> Browser:
    """Fails where there is no Chromium: the stories must not be passed over in silence."""
    assert CHROMIUM, "there is no chromium: `make packages` installs it"
    return playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@contextmanager
def watched_page(browser: Browser, url: str, **options: object) -> Iterator[Page]:
    """A page of a browser without history. At its end: no script failed or was refused by the policy, and
    nothing was asked of another origin than `url`'s."""
    context = browser.new_context(base_url=url, **options)  # type: ignore[arg-type]
    page, wrong = context.new_page(), list[str]()
    page.set_default_timeout(10_000)
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on(
        "console",
        # Chromium reports each answer of 400 and above here: those are the server's words, not a fault.
        lambda said: (
            wrong.append(f"console: {said.text}")
            if said.type == "error" and "Failed to load resource" not in said.text
            else None
        ),
    )
    page.on(
        "request",
        lambda request: (
            wrong.append(f"foreign: {request.url}")
            if urlsplit(request.url).netloc != urlsplit(url).netloc and not request.url.startswith("data:")
            else None
        ),
    )
    try:
        yield page
        assert wrong == []
    finally:
        context.close()
