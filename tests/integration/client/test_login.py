"""`scheduler login`: a command line that a person lets in, in a browser."""

import re
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests
from flask import Flask
from werkzeug.serving import make_server

from scheduler_app.api import request_limits
from scheduler_app.config import Settings
from scheduler_app.embedded import Mongod, Redis
from tests.integration.api.conftest import start, stop
from tests.openid_provider import (
    Browser,
    OpenIdProvider,
    be_patient,
    led_to,
    openid_provider,
    sign_in_settings,
)
from tests.processes import PATIENCE_SECONDS, Program, wait_until

ASK = "/sign-in/command-line"


@pytest.fixture(scope="module")
def served(
    mongod_server: Mongod, redis_server: Redis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Flask, OpenIdProvider]]:
    """An application with a provider, under its own address."""
    folder = tmp_path_factory.mktemp("openid")
    with (
        # Held from now on: the provider, which takes a while to start, has to know the port.
        socket.create_server(("127.0.0.1", 0), backlog=128) as listener,
        pytest.MonkeyPatch.context() as patch,
        openid_provider(folder, f"http://localhost:{(port := listener.getsockname()[1])}") as provider,
    ):
        be_patient(patch)
        for limit in ("GET_SECONDS", "CHANGE_SECONDS", "MUCH_SECONDS"):
            patch.setattr(request_limits, limit, PATIENCE_SECONDS)
        given = {
            "mongo_uri": mongod_server.uri,
            "broker_url": redis_server.url,
            "mongo_database": "test_login",
        }
        app = start(Settings(**given | sign_in_settings(provider)))
        # Otherwise the first requests meet missing indexes.
        app.extensions["scheduler"].store.prepare()
        server = make_server("127.0.0.1", port, app, threaded=True, fd=listener.fileno())
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield app, provider
        server.shutdown()
        thread.join()
        app.extensions["scheduler"].store.mongo.client.drop_database("test_login")
        stop(app)


def scheduler(provider: OpenIdProvider, folder: Path, *words: str) -> Program:
    environment = {"SCHEDULER_PROFILES": str(folder / "profiles.toml"), "BROWSER": "true"}
    if words[0] == "login":
        words = (*words, "--api-url", provider.public_url)
    return Program([sys.executable, "-m", "scheduler_app.cli", *words], folder, environment)


def test_a_browser_on_this_machine_lets_the_command_line_in(
    served: tuple[Flask, OpenIdProvider], tmp_path: Path
) -> None:
    app, provider = served
    browser = Browser(app, provider)
    assert browser.sign_in("ann").status_code == 200
    login = scheduler(provider, tmp_path, "login")
    address = login.wait_for(r"Sign in in your browser, at (\S+)")[1]
    asked = dict(parse_qsl(urlsplit(address).query))
    port = f"http://127.0.0.1:{asked['port']}/"
    # Pages of others find the port, too.
    assert requests.get(port, params={"code": "x", "state": "guessed"}).status_code == 404
    assert requests.get(f"{port}favicon.ico").status_code == 404
    answer = requests.get(led_to(browser.post(ASK, "/you", **asked)))
    assert "signed in" in answer.text
    assert login.wait() == 0, login.output
    assert "signed in as ann@example.com until 20" in login.output
    kept = tmp_path / "profiles.toml"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "rrp_" in kept.read_text()
    assert "rrp_" not in login.output
    listed = scheduler(provider, tmp_path, "people", "list")
    assert listed.wait() == 0, listed.output
    assert "ann@example.com" in listed.output
    # Where commands have signed in, they may sign in again, and out.
    out = scheduler(provider, tmp_path, "logout")
    assert out.wait() == 0, out.output
    assert "rrp_" not in kept.read_text()
    assert scheduler(provider, tmp_path, "logout").wait() != 0


def test_a_browser_elsewhere_lets_the_command_line_in(
    served: tuple[Flask, OpenIdProvider], tmp_path: Path
) -> None:
    app, provider = served
    login = scheduler(provider, tmp_path, "login", "--device")
    typed = login.wait_for(r"^  ([2-9A-Z]{4}-[2-9A-Z]{4}-[2-9A-Z]{4})$")[1]
    browser = Browser(app, provider)
    assert browser.sign_in("ann").status_code == 200
    assert browser.post(ASK, "/you", code=typed).status_code == 200
    assert login.wait() == 0, login.output
    listed = scheduler(provider, tmp_path, "people", "list", "--json")
    assert listed.wait() == 0, listed.output
    person = re.search(r'"id": "(\w+)"', listed.output)
    assert person
    ended = scheduler(provider, tmp_path, "people", "sign-out", person[1])
    assert ended.wait() == 0, ended.output

    def is_over() -> bool:
        again = scheduler(provider, tmp_path, "people", "list")
        return again.wait() != 0

    wait_until(is_over, "the sign-in to be over", pause=1.0)
    assert not browser.is_signed_in()


def test_a_profile_with_a_key_is_not_overwritten(
    served: tuple[Flask, OpenIdProvider], tmp_path: Path
) -> None:
    _, provider = served
    kept = tmp_path / "profiles.toml"
    kept.write_text('[default]\nurl = "http://127.0.0.1:9"\napi_key = "a-key-that-is-kept"\n')
    kept.chmod(0o600)
    login = scheduler(provider, tmp_path, "login")
    assert login.wait() == 64, login.output
    assert "has a key" in login.output
    assert "a-key-that-is-kept" in kept.read_text()
