"""What a log line shows, and what it must not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = Path(__file__).parents[3]

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
SAYS = """
from scheduler_app.config import load_settings
from scheduler_app.telemetry import configure_logs, get_logger
configure_logs(load_settings().log_level, "json")
log = get_logger("test")
for level in ("debug", "info", "warning", "error"):
    getattr(log, level)("it.happened", message=level)
"""
CONFIGURED = ("", 'configure_logs("info", "text")', 'configure_logs("info", "json")')


@pytest.mark.parametrize("configured", CONFIGURED, ids=("before they are configured", "text", "json"))
def test_a_traceback_names_the_error_and_no_local_variable_nor_control_character(configured: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RAISES.format(configured=configured)],
        capture_output=True,
        text=True,
        env={**os.environ, "FORCE_COLOR": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert (done.stdout, "canary-in" in done.stderr) == ("", False), done.stdout + done.stderr
    assert "Traceback (most recent call last)" in done.stderr
    assert "ValueError: the sentence" in done.stderr
    assert not set("\x07\x1b\x9b\u202e") & set(done.stderr)


@pytest.mark.parametrize(
    ("level", "said"),
    [
        ("debug", ["debug", "info", "warning", "error"]),
        (None, ["info", "warning", "error"]),
        ("error", ["error"]),
    ],
)
def test_a_level_and_what_is_graver_is_said_and_info_is_the_default(
    level: str | None, said: list[str], tmp_path: Path
) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "LOG_LEVEL"}
    done = subprocess.run(
        [sys.executable, "-c", SAYS],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(CODE)} | ({"LOG_LEVEL": level} if level else {}),
    )
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["message"] for line in done.stderr.splitlines()] == said
