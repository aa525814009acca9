"""A real OpenID provider, of npm, and a browser that signs in with it."""

import html
import re
import shutil
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from flask import Flask
from werkzeug.test import TestResponse

from scheduler_app.embedded.server import free_port
from scheduler_app.oidc import exchange, tokens
from tests.integration.api.page_forms import form_token
from tests.processes import PATIENCE_SECONDS, Program, wait_until

ROOT = Path(__file__).parents[1]
NODE_MODULES = ROOT / ".venv" / "node" / "node_modules"
CLIENT_ID, CLIENT_SECRET = "scheduler", "a-secret-of-the-scheduler"
PUBLIC_URL = "http://localhost"
KEY = "0123456789abcdef-k"
ROLES = (
    "groups=ops=read+trigger+write,groups=ops=admin,groups=readers=read,groups=acme=all@acme,groups=root=all@*,"
    "email=ann@example.com=read"
)
CALLBACK, SIGNED_OUT, BACK_CHANNEL = "/sign-in/callback", "/sign-in", "/sign-in/back-channel"


class OpenIdProvider:
    """`tests/node/openid.mjs`: whoever `sign_in_as` has named signs in without a password."""

    def __init__(self, folder: Path, public_url: str, back_channel: str = "") -> None:
        node = shutil.which("node")
        assert node, "Node is missing: run `make packages` as root"
        assert NODE_MODULES.is_dir(), "the provider is missing: run `make .venv/node/installed`"
        self.public_url = public_url
        self.port = free_port()
        self.issuer = f"http://127.0.0.1:{self.port}"
        addresses = [public_url + CALLBACK, public_url + SIGNED_OUT, back_channel]
        script = ROOT / "tests" / "node" / "openid.mjs"
        self._command = [node, str(script), str(NODE_MODULES), str(self.port), *addresses]
        self._folder = folder
        self.start()

    def start(self) -> None:
        self._program = Program(self._command, self._folder)
        self._program.wait_for("^listening")

    def stop(self) -> None:
        self._program.kill()

    def sign_in_as(self, account: str) -> None:
        self.change("as", account)

    def change(self, what: str, value: str = "") -> None:
        """See `changes` in the script."""
        answer = requests.get(f"{self.issuer}/test/{what}", params={"value": value})
        assert answer.text == "done", answer.text


def sign_in_settings(provider: OpenIdProvider) -> dict[str, Any]:
    """The settings by which people sign in there."""
    return {
        "api_keys": (f"root:{KEY}",),
        "public_url": provider.public_url,
        "oidc_issuer": provider.issuer,
        "oidc_client_id": CLIENT_ID,
        "oidc_client_secret": CLIENT_SECRET,
        "oidc_roles": ROLES,
        "oidc_scopes": "openid profile email groups",
    }


@contextmanager
def openid_provider(folder: Path, public_url: str, back_channel: str = "") -> Iterator[OpenIdProvider]:
    provider = OpenIdProvider(folder, public_url, back_channel)
    try:
        yield provider
    finally:
        provider.stop()


def be_patient(patch: pytest.MonkeyPatch) -> None:
    """Lets processes of this one wait for the provider: a machine that stands still is none that is away."""
    patch.setattr(exchange, "ANSWER_SECONDS", PATIENCE_SECONDS)
    patch.setattr(exchange, "_SOCKET_SECONDS", (PATIENCE_SECONDS, PATIENCE_SECONDS))
    # What was away a moment ago is asked again at once.
    patch.setattr(exchange, "AWAY_SECONDS", 0.0)
    # A clock that a test sets stands still, and the provider's goes on.
    patch.setattr(tokens, "LEEWAY_SECONDS", int(PATIENCE_SECONDS))


class Browser:
    """Pages of ours in this process, and those of the provider over HTTP."""

    def __init__(self, app: Flask, provider: OpenIdProvider) -> None:
        self.here = app.test_client()
        self.there = requests.Session()
        self._provider = provider
        self._base = {"base_url": provider.public_url}

    def get(self, path: str) -> TestResponse:
        return self.here.get(path, **self._base)

    def post(self, path: str, form_at: str = "/sign-in", **fields: str) -> TestResponse:
        token = form_token(self.here, form_at)
        return self.here.post(path, data={"form_token": token, **fields}, **self._base)

    def leave(self, wanted: str = "") -> str:
        """Where our page leads the browser to sign in."""
        answer = self.post("/sign-in/provider", next=wanted)
        assert answer.status_code == 200, answer.text
        return led_to(answer)

    def visit(self, url: str) -> str:
        """Follows the provider's redirects to the one that leads back, and gives its path and query."""
        for _ in range(20):
            answer = self.there.get(url, allow_redirects=False)
            assert answer.status_code in (302, 303), answer.text
            url = urllib.parse.urljoin(url, answer.headers["Location"])
            if url.startswith(f"{self._provider.public_url}{CALLBACK}"):
                return url.removeprefix(self._provider.public_url)
        raise AssertionError(f"the provider never leads back: {url}")

    def sign_in(self, account: str, wanted: str = "") -> TestResponse:
        """Signs in with an account; our answer when the browser is back."""
        self._provider.sign_in_as(account)
        return self.get(self.visit(self.leave(wanted)))

    def is_signed_in(self) -> bool:
        return self.get("/you").status_code == 200

    def sign_out(self, **fields: str) -> TestResponse:
        return self.post("/sign-out", "/you", **fields)

    def sign_out_there(self, url: str) -> str:
        """What a person does at the provider's page for signing out; where it leads then."""
        page = self.there.get(url)
        form = dict(re.findall(r'name="([^"]+)" value="([^"]*)"', page.text))
        action = re.search(r'action="([^"]+)"', page.text)
        assert action, page.text
        answer = self.there.post(html.unescape(action[1]), data=form, allow_redirects=False)
        assert answer.status_code in (302, 303), answer.text
        return answer.headers["Location"]


def led_to(answer: TestResponse) -> str:
    """Where a page leads on by itself."""
    found = re.search(r'http-equiv="refresh" content="0;url=([^"]*)"', answer.text)
    assert found, answer.text
    return html.unescape(found[1])


def wait_until_signed_out(browser: Browser) -> None:
    wait_until(lambda: not browser.is_signed_in(), "the session to be over")
