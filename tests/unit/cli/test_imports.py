"""What a command imports: most of the time of a short command is its imports."""

import json
import subprocess
import sys

import pytest

#: What speaks to MongoDB, to Redis or to receivers, or serves: remote commands have no use for it.
HEAVY = {
    *("pymongo", "bson", "redis", "kombu", "celery", "flask", "marshmallow", "flower", "gunicorn"),
    *("pycurl", "cryptography", "prometheus_client", "structlog", "dateutil"),
}
REMOTE = (
    "list",
    "get",
    "create",
    "trigger",
    "pause",
    "resume",
    "delete",
    "history",
    "preview",
    "export",
    "import",
    "import-celery-beat",
    "update",
    "schedule",
    "cancel",
    "next",
    "events",
    "failed",
    "tail",
    "apply",
    "calendar",
    "profile",
    "completion",
    "version",
)


def imported(*commands: list[str]) -> set[str]:
    program = (
        "import contextlib, io, json, sys\n"
        "from scheduler_app.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    for command in json.loads(sys.argv[1]):\n"
        "        main(command, prog_name='scheduler', standalone_mode=False)\n"
        "print(json.dumps(sorted(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(commands)], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


@pytest.mark.parametrize(
    ("commands", "unneeded"),
    [
        ([["--version"]], {*HEAVY, "requests", "rich", "yaml"}),
        ([["--help"], ["up", "--help"], ["doctor", "--help"]], HEAVY),
        ([[name, "--help"] for name in REMOTE], {*HEAVY, "rich", "yaml"}),
    ],
    ids=["version", "help", "remote"],
)
def test_a_short_command_does_not_wait_for_drivers_and_servers(
    commands: list[list[str]], unneeded: set[str]
) -> None:
    found = imported(*commands)
    assert "click" in found
    assert found & unneeded == set()
