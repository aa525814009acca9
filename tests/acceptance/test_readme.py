"""The examples of the README and of the API's page, word for word, but for the ports."""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler_app.embedded import free_port
from tests.processes import Program, wait_until

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "api.md")
MARK = "<!-- run by tests/acceptance/test_readme.py -->\n```bash\n"


def blocks() -> list[str]:
    """The marked examples, in their order."""
    return [part.split("```")[0] for page in PAGES for part in page.read_text().split(MARK)[1:]]


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="readme-") as name:
        yield Path(name)


@pytest.mark.timeout(180)
def test_the_first_schedule_works_as_the_readme_says(folder: Path) -> None:
    port, receiver_port = free_port(), free_port()
    up = Program(
        [sys.executable, "-m", "scheduler_app.cli", "up", "--worker-count", "1", "--port", str(port)], folder
    )
    receiver = Program(
        [sys.executable, "-u", "-m", "http.server", str(receiver_port), "--bind", "127.0.0.1"], folder
    )
    try:
        up.wait_for(r"^Everything is ready", 90)

        def here(text: str) -> str:
            local = text.replace("localhost:8080", f"localhost:{port}").replace(":9000", f":{receiver_port}")
            return local.replace("https://example.com", f"http://127.0.0.1:{receiver_port}")

        def run(block: str) -> list[dict[str, Any]]:
            script = here(block)
            done = subprocess.run(["bash", "-ec", script], capture_output=True, text=True, check=True)
            answers = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
            assert all("status" not in answer or answer["status"] != 422 for answer in answers), answers
            return answers

        create, look, change, more = blocks()
        (created,) = run(create)
        assert created["id"] == "my-first"
        pending, history = run(look)
        assert len(pending["events"]) == 3
        (event,) = history["events"]
        assert re.fullmatch(r"my-first-1-\d{8}T\d{6}Z", event["_id"])
        assert event["state"] == "completed"
        receiver.wait_for(r'"GET / HTTP/1\.1" 200')
        paused, resumed, triggered, edited, deleted = run(change)
        assert (paused["state"], resumed["state"]) == ("paused", "active")
        assert triggered["event_id"].startswith("my-first-manual-")
        assert (edited["message"], edited["timezone"]) == ("Schedule updated successfully.", "Europe/Zurich")
        assert deleted == {"message": "Schedule and associated events deleted."}
        wait_until(lambda: receiver.output.count("GET /") >= 2, "the calls")
        preview, signed, errors = run(more)
        assert [each["local"][:16] for each in preview["occurrences"]] == [
            "2026-10-24T02:30",
            "2026-10-25T02:30",
            "2026-10-26T02:30",
        ]
        assert preview["occurrences"][1]["dst"] == "overlap_first"
        assert "whsec_" in json.dumps(signed)
        assert errors["events"] == []
        python = PAGES[1].read_text().split("```python\n")[1].split("```")[0]
        done = subprocess.run([sys.executable, "-c", here(python)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    finally:
        up.kill()
        receiver.kill()
