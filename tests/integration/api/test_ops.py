"""What probes and scrapes are told while MongoDB is away: that it is, and soon."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from scheduler_app.api.routes import operations
from scheduler_app.embedded import Mongod
from scheduler_app.health import ready, status
from tests.processes import PATIENCE_SECONDS, freeze, wait_until

SOON_SECONDS = 3.0


@pytest.fixture(scope="module", autouse=True)
def patient() -> None:
    """Here it is the product's own patience that counts."""


@pytest.fixture
def own_mongod(tmp_path: Path) -> Iterator[Mongod]:
    with Mongod(tmp_path / "mongod") as server:
        yield server


def _kill(mongod: Mongod) -> None:
    mongod.kill()


def _freeze(mongod: Mongod) -> None:
    assert mongod.pid
    freeze(mongod.pid)


def _soon(client: FlaskClient, path: str, said: str) -> TestResponse:
    """The first answer that comes soon and has what Redis says: a machine that stands still makes some late,
    and not each of many."""
    answers: list[TestResponse] = []

    def comes_soon() -> bool:
        started = time.monotonic()
        answers.append(client.get(path))
        return time.monotonic() - started < SOON_SECONDS and said in answers[-1].text

    wait_until(comes_soon, f"{path} to be answered soon")
    return answers[-1]


@pytest.mark.parametrize("end", [_kill, pytest.param(_freeze, marks=pytest.mark.long)])
def test_a_mongodb_that_does_not_answer_is_told_of_soon(
    own_mongod: Mongod, make_api: Callable[..., Flask], end: Callable[[Mongod], None]
) -> None:
    app = make_api(mongo_uri=own_mongod.uri)
    app.extensions["scheduler"].store.prepare()
    client = app.test_client()
    with pytest.MonkeyPatch.context() as unhurried:
        for module in (operations, ready, status):
            unhurried.setattr(module, "ANSWER_SECONDS", PATIENCE_SECONDS)
        assert client.get("/readyz").get_json()["checks"]["mongodb"]["ok"]
        assert "scheduler_events{" in client.get("/metrics").text
    end(own_mongod)
    try:
        probed = _soon(client, "/readyz", "queue_length")
        scraped = _soon(client, "/metrics", "scheduler_queue_length")
    finally:
        own_mongod.kill()
    assert (probed.status_code, probed.get_json()["checks"]["mongodb"]["ok"]) == (503, False)
    assert scraped.status_code == 200
    assert "scheduler_events{" not in scraped.text
