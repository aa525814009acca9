from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from scheduler_app.actions.http import Guard, parse_networks
from scheduler_app.actions.http.sender import Sender
from tests.integration.actions.receiver import Behaviour, Receiver, says

LOOPBACK = parse_networks("127.0.0.0/8,::1/128")


@pytest.fixture
def resources() -> Iterator[ExitStack]:
    """Closes, in reverse order, what the test opened."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def receive(resources: ExitStack) -> Callable[..., Receiver]:
    """Starts a receiver with the behaviour given (200 by default)."""

    def start(behave: Behaviour | None = None, **options: Any) -> Receiver:
        return resources.enter_context(closing(Receiver(behave or says(), **options)))

    return start


@pytest.fixture
def sender(resources: ExitStack) -> Sender:
    """A sender that may reach loopback."""
    return resources.enter_context(closing(Sender(Guard(LOOPBACK))))


@pytest.fixture
def strict_sender(resources: ExitStack) -> Sender:
    """A sender as a stranger's callback meets it: nothing is allowed but public addresses."""
    return resources.enter_context(closing(Sender(Guard())))
