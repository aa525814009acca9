"""The folders that killed APIs leave in /tmp are removed by the next one; those in use are not."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler_app.cli import metrics_folder


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def api(temporary: Path) -> "subprocess.Popen[str]":
    """A process that has such a folder, and says so."""
    program = (
        "import time; from scheduler_app.cli import metrics_folder;"
        "print(metrics_folder.make(), flush=True); time.sleep(60)"
    )
    environment = {**os.environ, "TMPDIR": str(temporary)}
    return subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True
    )


def test_a_folder_is_removed_when_the_process_that_had_it_was_killed(temporary: Path) -> None:
    (temporary / "scheduler-metrics-somebody-is-making-it").mkdir()
    with api(temporary) as running, api(temporary) as killed:
        assert running.stdout is not None
        assert killed.stdout is not None
        kept, left = (Path(each.stdout.readline().strip()) for each in (running, killed) if each.stdout)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        mine = metrics_folder.make()
        assert not left.exists()
        assert kept.is_dir()
        assert {path.name for path in temporary.iterdir()} == {
            mine.name,
            kept.name,
            "scheduler-metrics-somebody-is-making-it",
        }
        running.kill()
    metrics_folder.remove(mine)
    assert not mine.exists()


def test_a_folder_that_an_operator_has_set_stays(tmp_path: Path) -> None:
    metrics_folder.remove(tmp_path)
    assert tmp_path.is_dir()
