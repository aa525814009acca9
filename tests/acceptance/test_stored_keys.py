"""Keys of the API that are kept in MongoDB, over three processes that have no others, and beyond loopback."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
import requests
from click.testing import CliRunner

from scheduler_app.cli import main
from scheduler_app.client import Scheduler, SchedulerError
from scheduler_app.health.startup import EXIT_STATUS
from tests.acceptance.stack import Stack
from tests.acceptance.test_cannot_start import SERVED, sentence_of
from tests.processes import Program, wait_until


@pytest.fixture
def stack(make_stack: Callable[..., Stack]) -> Stack:
    return make_stack(API_HOST="0.0.0.0", API_PROCESSES="1", API_KEYS="")


@pytest.fixture
def first_key(stack: Stack) -> str:
    done = CliRunner().invoke(main, ("keys", "create", "root", "--admin", "-q"), env=stack.environment)
    assert done.exit_code == 0, done.output
    return done.stdout.split()[-1]


def test_beyond_loopback_an_api_that_no_key_opens_does_not_start(
    stack: Stack, run: Callable[..., Program]
) -> None:
    program = run(sys.executable, "-m", *SERVED, **stack.environment)
    assert program.wait() == EXIT_STATUS
    assert "scheduler keys create NAME --admin" in sentence_of(program)


def create_expiring(root: Scheduler) -> dict[str, Any]:
    """A key that ends in seconds, and another one where this machine let them pass before it was made."""
    while True:
        ends = datetime.now(UTC) + timedelta(seconds=5)
        try:
            return root.create_key("expiring", ["admin"], expires_at=ends)
        except SchedulerError as error:
            if "expires_at: has passed" not in str(error):
                raise


def test_a_deleted_rotated_or_expired_key_soon_opens_none_of_three_processes(
    stack: Stack, first_key: str
) -> None:
    urls = []
    for _ in range(3):
        stack.api()
        urls.append(stack.url)

    def status(url: str, key: str) -> int:
        return requests.get(f"{url}/api/v1/keys", headers={"X-API-Key": key}).status_code

    def statuses(key: str) -> list[int]:
        return [status(url, key) for url in urls]

    def is_refused(url: str, key: str) -> bool:
        return status(url, key) == 401

    assert [requests.get(f"{url}/api/v1/keys").status_code for url in urls] == [401, 401, 401]
    with ExitStack() as stack_of_clients:
        root = stack_of_clients.enter_context(Scheduler(urls[0], first_key))
        deleted, rotated = (root.create_key(name, ["admin"]) for name in ("deleted", "rotated"))
        expiring = create_expiring(root)
        for each in (deleted, rotated):
            assert statuses(each["key"]) == [200, 200, 200]
        statuses(expiring["key"])  # each process knows it, unless this took seconds
        root.revoke_key(deleted["id"])
        newer = root.rotate_key(rotated["id"])
    # How soon is tested with a clock that is held: tests/integration/api/test_stored_keys.py.
    for each in (deleted, rotated, expiring):
        for url in urls:
            wait_until(partial(is_refused, url, each["key"]), f"{each['name']} to be refused", pause=0.5)
    for text in (newer["key"], first_key):
        assert statuses(text) == [200, 200, 200]
