"""What a log line shows, and what it must not."""

import os
import subprocess
import sys

import pytest

#: A secret in a local variable of the frame that raises, and of the one that logs.
RAISES = """
from scheduler_app.telemetry import configure_logs, get_logger
{configured}
log = get_logger("test")

def fails(api_key):
    held = "canary-" + "in-a-local"
    raise ValueError("the sentence \\x1b[31m\\u202e of the error")

try:
    fails("canary-" + "in-an-argument")
except ValueError:
    log.exception("it.failed", message="It failed", path="/a\\x1b]0;title\\x07\\u202e", name="\\x9bm")
"""
CONFIGURED = ("", 'configure_logs("info", "text")', 'configure_logs("info", "json")')


@pytest.mark.parametrize("configured", CONFIGURED, ids=("before they are configured", "text", "json"))
def test_a_traceback_names_the_error_and_no_local_variable_nor_control_character(configured: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RAISES.format(configured=configured)],
        capture_output=True,
        text=True,
        env={**os.environ, "FORCE_COLOR": "1"},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert (done.stdout, "canary-in" in done.stderr) == ("", False), done.stdout + done.stderr
    assert "Traceback (most recent call last)" in done.stderr
    assert "ValueError: the sentence" in done.stderr
    assert not set("\x07\x1b\x9b\u202e") & set(done.stderr)
