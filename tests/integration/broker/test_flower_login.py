"""What Flower shows without its login, started by hand and as `scheduler up` starts it."""

import sys
from collections.abc import Callable

import pytest
import requests

from scheduler_app.embedded import free_port
from tests.processes import PATIENCE_SECONDS, Program, wait_until

LOGIN = ("somebody", "a-password")
COMMANDS = {
    "celery": ("celery", "-A", "scheduler_app", "flower"),
    "up": ("scheduler_app.cli.up.celery_process", "flower"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_nothing_but_the_health_check_is_open(
    run: Callable[..., Program], redis_url: str, command: tuple[str, ...]
) -> None:
    url = f"http://127.0.0.1:{(port := free_port())}"
    run(
        *(sys.executable, "-m", *command, "--address=127.0.0.1", f"--port={port}"),
        BROKER_URL=redis_url,
        FLOWER_BASIC_AUTH=":".join(LOGIN),
    )

    def answers() -> bool:
        try:
            return requests.get(f"{url}/healthcheck", timeout=10).ok
        except requests.RequestException:
            return False

    wait_until(answers, "Flower")
    for path in ("/", "/metrics", "/api/workers"):
        assert requests.get(f"{url}{path}", timeout=PATIENCE_SECONDS).status_code == 401, path
    metrics = requests.get(f"{url}/metrics", auth=LOGIN, timeout=PATIENCE_SECONDS)
    assert (metrics.status_code, "flower_" in metrics.text) == (200, True)
