"""With keys a browser signs in, and is led back to where it wanted to go."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from scheduler_app.embedded.server import free_port
from tests.acceptance.pages.browser import watched_page
from tests.acceptance.stack import Stack
from tests.openid_provider import openid_provider, sign_in_settings
from tests.processes import wait_until

KEY = "a-key-for-the-sign-in"


def test_a_person_signs_in_works_and_signs_out(browser: Browser, make_stack: Callable[..., Stack]) -> None:
    stack = make_stack(API_KEYS=KEY)
    stack.api()
    with watched_page(browser, stack.url) as page:
        page.goto("/schedules?tag=a")
        page.get_by_test_id("key").fill("another-key-entirely")
        page.get_by_test_id("sign-in").click()
        expect(page.get_by_test_id("refused")).to_be_visible()
        page.get_by_test_id("key").fill(KEY)
        page.get_by_test_id("sign-in").click()
        expect(page).to_have_url(f"{stack.url}/schedules?tag=a")
        page.goto("/new-schedule")
        page.get_by_test_id("name").fill("Mine")
        page.get_by_test_id("when").fill("every day at 9:00")
        page.get_by_test_id("url").fill("https://example.com/")
        page.get_by_test_id("save").click()
        expect(page.get_by_test_id("done")).to_have_text("Created.")
        page.get_by_test_id("sign-out").click()
        expect(page).to_have_url(f"{stack.url}/sign-in")
        page.goto("/schedules")
        expect(page.get_by_test_id("key")).to_be_visible()
        page.go_back()
        expect(page.get_by_text("Mine")).to_have_count(0)


def sign_in_with_account(page: Page, wanted: str, then: str) -> None:
    """Asks for a page and signs in with the account, until something with the mark `then` is shown."""

    def is_done() -> bool:
        page.goto(wanted)
        page.get_by_test_id("sign-in-with-account").click()
        # On a busy machine the provider may answer too late, and is left alone for a while then.
        expect(page.get_by_test_id("provider-away").or_(page.get_by_test_id(then))).to_be_visible()
        return page.get_by_test_id(then).is_visible()

    wait_until(is_done, "the sign-in", pause=5.0)


def test_a_person_signs_in_with_the_account_of_a_company_and_signs_out_there_too(
    browser: Browser, make_stack: Callable[..., Stack], tmp_path: Path
) -> None:
    port = free_port()
    # For browsers this is another site than the provider's, which has an address in the place of a name.
    own = f"http://localhost:{port}"
    with openid_provider(tmp_path, own) as provider:
        given = sign_in_settings(provider)
        names = [name for name in given if name != "api_keys"]
        stack = make_stack(API_KEYS=KEY, **{name.upper(): given[name] for name in names})
        stack.api(API_PORT=str(port))
        with watched_page(browser, own, provider=provider.issuer) as page:
            provider.sign_in_as("eve")
            sign_in_with_account(page, "/schedules?tag=a", "refused")
            expect(page.get_by_test_id("refused")).to_contain_text("no line of OIDC_ROLES")
            page.context.clear_cookies()
            provider.sign_in_as("ann")
            sign_in_with_account(page, "/schedules?tag=a", "sign-out")
            expect(page).to_have_url(f"{own}/schedules?tag=a")
            page.goto("/people")
            expect(page.get_by_role("main").get_by_text("ann@example.com").first).to_be_visible()
            page.get_by_test_id("sign-out").click()
            page.wait_for_url(f"{provider.issuer}/**")
            # A form of the provider without a button: it has been told to ask nothing.
            page.evaluate("document.forms[0].submit()")
            expect(page).to_have_url(f"{own}/sign-in")
            page.goto("/people")
            expect(page.get_by_test_id("sign-in-with-account")).to_be_visible()
