"""A deployment that `scheduler demo` has filled."""

import subprocess
import sys

from tests.acceptance.stack import Stack


def run_demo(stack: Stack, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs the command as a user does, for the stack's own processes."""
    return subprocess.run(
        [sys.executable, "-m", "scheduler_app.cli", "demo", *options],
        env={**stack.environment, "API_PORT": stack.url.rpartition(":")[2]},
        cwd=stack.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
