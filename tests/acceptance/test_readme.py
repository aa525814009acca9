"""The examples of the README, of the API's page and of the first hour, word for word, but for the ports."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from scheduler_app.embedded import free_port
from scheduler_app.embedded.server import listens
from tests.acceptance.ups import Ups
from tests.processes import Program, wait_until

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "api.md")
TUTORIAL = ROOT / "docs" / "tutorial.md"
MARK = "<!-- run by tests/acceptance/test_readme.py -->\n```bash\n"


def blocks(*pages: Path) -> list[str]:
    """The marked examples, in their order."""
    return [part.split("```")[0] for page in pages for part in page.read_text().split(MARK)[1:]]


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="readme-") as name:
        yield Path(name)


def port_of(up: Program) -> int:
    """The API's."""
    return int(up.wait_for(r"^  API +http://\S+:(\d+)$")[1])


@pytest.mark.timeout(180)
def test_the_first_schedule_works_as_the_readme_says(ups: Ups, folder: Path) -> None:
    port, receiver_port = port_of(ups.runs()[0]), free_port()
    receiver = Program(
        [sys.executable, "-u", "-m", "http.server", str(receiver_port), "--bind", "127.0.0.1"], folder
    )
    try:

        def here(text: str) -> str:
            local = text.replace("localhost:8080", f"localhost:{port}").replace(":9000", f":{receiver_port}")
            return local.replace("https://example.com", f"http://127.0.0.1:{receiver_port}")

        def run(block: str) -> list[dict[str, Any]]:
            answers = [answer for each in re.split(r"\n(?=curl )", here(block)) for answer in taken(each)]
            assert all("status" not in answer or answer["status"] != 422 for answer in answers), answers
            return answers

        def taken(command: str) -> list[dict[str, Any]]:
            """What is answered. Where a callback that was in flight at the edit before is so still, the API
            asks for patience."""
            answers: list[dict[str, Any]] = []

            def is_taken() -> bool:
                done = subprocess.run(["bash", "-ec", command], capture_output=True, text=True, check=True)
                answers[:] = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
                return all(answer.get("status") != 409 for answer in answers)

            wait_until(is_taken, "the command to be taken", pause=0.5)
            return answers

        def ran() -> list[dict[str, Any]]:
            found = requests.get(f"http://127.0.0.1:{port}/api/schedules/my-first/events/history")
            events: list[dict[str, Any]] = found.json()["events"]
            return events

        create, look, change, more = blocks(*PAGES)
        (created,) = run(create)
        assert created["id"] == "my-first"
        receiver.wait_for(r'"GET / HTTP/1\.1" 200')
        wait_until(lambda: ran() != [], "the record of a call")
        pending, history = run(look)
        # A page is short when one of its events ends while it is read.
        assert len(pending["events"]) in (2, 3)
        (event,) = history["events"]
        assert re.fullmatch(r"my-first-1-\d{8}T\d{6}Z", event["_id"])
        assert event["state"] == "completed"
        # What is not sent by the deletion never will be.
        wait_until(lambda: receiver.output.count("GET /") >= 2, "the calls")
        paused, resumed, triggered, edited, deleted = run(change)
        assert (paused["state"], resumed["state"]) == ("paused", "active")
        assert triggered["event_id"].startswith("my-first-manual-")
        assert (edited["message"], edited["timezone"]) == ("Schedule updated successfully.", "Europe/Zurich")
        assert deleted == {"message": "Schedule and associated events deleted."}
        preview, signed, errors = run(more)
        assert [each["local"][:16] for each in preview["occurrences"]] == [
            "2026-10-24T02:30",
            "2026-10-25T02:30",
            "2026-10-26T02:30",
        ]
        assert preview["occurrences"][1]["dst"] == "overlap_first"
        assert "whsec_" in json.dumps(signed)
        # Created right before a second begins, its first occurrence may have met the 404 by now.
        assert {each["schedule_id"] for each in errors["events"]} <= {signed["id"]}
        python = PAGES[1].read_text().split("```python\n")[1].split("```")[0]
        done = subprocess.run([sys.executable, "-c", here(python)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    finally:
        receiver.kill()


@pytest.mark.timeout(180)
def test_a_first_hour_goes_as_the_tutorial_says(ups: Ups, folder: Path) -> None:
    # The other one: the tutorial counts all schedules.
    up = ups.runs()[1]
    port, receiver_port = port_of(up), free_port()
    programs: list[Program] = []
    command = f"{sys.executable} -m scheduler_app.cli"
    environment = os.environ | {"SCHEDULER_URL": f"http://127.0.0.1:{port}", "PYTHONPATH": str(ROOT)}

    def run(block: str) -> str:
        # In this order: 9000 may be part of the other port.
        local = block.replace("9000", str(receiver_port)).replace("localhost:8080", f"localhost:{port}")
        done = subprocess.run(
            ["bash", "-ec", local.replace(".venv/bin/scheduler", command)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def answers(block: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in run(block).splitlines()]

    def has_event(state: str) -> bool:
        asked = {"schedule_id": "hello", "state": state}
        found = requests.get(f"http://127.0.0.1:{port}/api/events", params=asked)
        return bool(found.json()["events"])

    try:
        parts = iter(blocks(TUTORIAL))
        run(next(parts))
        receiver = Program([sys.executable, "receiver.py"], folder)
        programs.append(receiver)
        # A first call that nobody answered would be tried again while the receiver is broken.
        wait_until(lambda: listens(receiver_port), "the receiver")
        (created,) = answers(next(parts))
        assert (created["id"], created["method"], created["max_retries"]) == ("hello", "POST", 10)
        wait_until(lambda: receiver.output.count("attempt 1") >= 2, "the first calls")
        assert re.search(r'^200 hello-1-\S+Z attempt 1 {"hello":"world"}$', receiver.output, re.MULTILINE)
        wait_until(lambda: has_event("completed"), "the record of a call")
        pending, history = answers(next(parts))
        # A page is short when one of its events ends while it is read.
        assert len(pending["events"]) in (1, 2)
        assert [line["status"] for line in history["events"][0]["status"]][-1] == "completed"
        assert "Event successfully processed" in run(next(parts))
        by_name, by_rule = answers(next(parts))
        assert by_name["detail"] == "url: Unknown field: use callback_url"
        assert "is a cron expression; give it as the field cron in the place of rrule" in by_rule["detail"]
        (preview,) = answers(next(parts))
        assert preview["description"] == "Monday to Friday at 09:00 (Europe/Zurich)"
        assert [each["result"] for each in answers(next(parts))] == ["created", "unchanged"]
        told, changed = answers(next(parts))
        assert (told["result"], told["dry_run"], told["version"]) == ("changed", True, 2)
        assert (changed["result"], changed["version"]) == ("changed", 2)
        run(next(parts))
        up.wait_for(r"A callback failed; it is tried again")
        up.wait_for(r"A callback failed for good; its event is a dead letter")
        wait_until(lambda: has_event("error"), "the dead letter")
        (dead,) = answers(next(parts))
        assert [attempt["status_code"] for attempt in dead["events"][0]["attempts"]] == [503, 503]
        # Before that, another one could become a dead letter between the count and the redrive.
        wait_until(lambda: "200 hello-" in receiver.output.rpartition("\n503 ")[2], "a call that succeeds")
        refused, counted, *said = run(next(parts)).splitlines()
        assert "all: true for every dead letter" in json.loads(refused)["detail"]
        assert json.loads(counted)["dry_run"] is True
        assert re.fullmatch(
            r"(\d+) dead letters? to redrive: --schedule hello --status-code 5xx\nredriven \1",
            "\n".join(said).strip(),
        )
        paused, _, withdrawn, resumed = answers(next(parts))
        assert (paused["state"], resumed["state"]) == ("paused", "active")
        assert withdrawn["events"][0]["state"] == "cancelled"
        assert run(next(parts)).splitlines() == [
            "2 schedules to delete: --all",
            "deleted 2",
            "dry run: created 2, changed 0, unchanged 0, refused 0",
            "created 2, changed 0, unchanged 0, refused 0",
            "created 0, changed 0, unchanged 2, refused 0",
        ]
        wait_until(lambda: "200 hello-4-" in receiver.output, "the restored schedule's calls")
        assert run(next(parts)).startswith("2 schedules to delete: --all\ndeleted 2\nstate ")
        assert next(parts, None) is None
    finally:
        for program in programs:
            program.kill()
