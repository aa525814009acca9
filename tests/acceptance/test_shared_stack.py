"""What one module leaves behind in the processes that modules share, the next one does not find."""

import requests

from tests.acceptance.journal import Journal
from tests.acceptance.shared_stack import SharedStack
from tests.integration.actions.receiver import says
from tests.processes import wait_until


def test_a_destination_of_the_next_module_knows_nothing_of_one_of_the_same_name(
    stack: SharedStack, journal: Journal
) -> None:
    destination = f"{stack.url}/api/destinations/shared-name"
    given = {
        "url": journal.script("/fails", says("503 Service Unavailable")),
        "max_retries": 0,
        "breaker": {"failures": 1, "open_seconds": 3_600},
    }

    def breaker() -> str:
        found: str = requests.get(destination).json()["flow"]["breaker"]
        return found

    assert requests.put(destination, json=given).status_code == 201
    failing = {"name": "fails", "destination": "shared-name", "on_demand": True}
    stack.post(f"/schedules/{stack.post('/schedules', failing)['id']}/trigger", status=202)
    wait_until(lambda: breaker() == "open", "the breaker to open")
    stack.begin()
    assert requests.put(destination, json=given).status_code == 201
    assert breaker() == "closed"
