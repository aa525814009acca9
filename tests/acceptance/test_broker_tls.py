"""The whole product over brokers that are spoken to by TLS."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from tests.acceptance.journal import Journal
from tests.acceptance.stack import Stack
from tests.processes import Program, wait_until
from tests.tls_brokers import tls_broker

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]


@pytest.mark.parametrize("kind", ["redis", "rabbitmq"])
def test_callbacks_arrive_and_doctor_finds_nothing_wrong(
    kind: str, make_stack: Callable[..., Stack], journal: Journal, tmp_path: Path, run: Callable[..., Program]
) -> None:
    with tls_broker(kind, tmp_path) as broker:
        stack = make_stack(**broker.environment)
        stack.all()
        made = stack.create(journal.url("/tls"), rrule="FREQ=SECONDLY;COUNT=3")
        assert {event["state"] for event in stack.finished(made, 3)} == {"completed"}
        ready = f"{stack.url}/readyz"
        wait_until(lambda: requests.get(ready).status_code == 200, "the API to be ready", pause=0.2)
        doctor = run(sys.executable, "-m", "scheduler_app.cli", "doctor", **stack.environment)
        assert doctor.wait() == 0, doctor.output
        stack.close()
