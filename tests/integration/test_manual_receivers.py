"""The manual's receivers without our package, word for word, called by the product's own sender."""

import re
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler_app.actions.http import Guard, Request, headers_for, parse_networks
from scheduler_app.actions.http.sender import Sender
from scheduler_app.embedded import free_port
from tests.processes import PATIENCE_SECONDS, Program, wait_until

MANUAL = Path(__file__).parents[2] / "docs" / "receivers.md"
MARK = "<!-- run by tests/integration/test_manual_receivers.py{} -->\n```{}\n"
#: For each language: what follows the mark, the language of the code, the file, and what runs it.
PROGRAMS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "python": ("", "python", "receiver.py", (sys.executable, "-u"))
}
if node := shutil.which("node"):
    PROGRAMS["node"] = (", where there is a Node", "javascript", "receiver.mjs", (node,))
SECRET = "whsec_" + "c2VjcmV0IG9mIGF0IGxlYXN0IDI0IGJ5dGVz"


@pytest.fixture(params=PROGRAMS)
def receiver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Program, int]]:
    mark, language, name, command = PROGRAMS[request.param]
    path, port = tmp_path / name, free_port()
    path.write_text(MANUAL.read_text().split(MARK.format(mark, language))[1].split("```")[0])
    program = Program(
        [*command, str(path)],
        tmp_path,
        {"SIGNING_SECRET": SECRET, "PORT": str(port), "DATABASE": str(tmp_path / "received.db")},
    )
    try:
        yield program, port
    finally:
        program.kill()


def test_it_does_the_work_of_an_occurrence_once_and_refuses_strangers(receiver: tuple[Program, int]) -> None:
    program, port = receiver
    sender = Sender(Guard(parse_networks("127.0.0.0/8")))

    def status(body: bytes, *, secret: str = SECRET, event_id: str = "s-1-20260302T120000Z") -> int | None:
        now = datetime.now(UTC)
        headers = headers_for(
            event_id=event_id,
            schedule_id="s",
            run_time=now,
            attempt=1,
            now=now,
            user_headers=(),
            body=body,
            signing_secrets=(secret,),
        )
        sender.start(Request("key", f"http://127.0.0.1:{port}/", "POST", headers, body, PATIENCE_SECONDS))
        answers = sender.wait(PATIENCE_SECONDS)
        while not answers:
            answers = sender.wait(PATIENCE_SECONDS)
        return answers[0].status

    try:
        wait_until(lambda: status(b"{}", event_id="first") in (200, 204), "the receiver")
        assert status(b'{"a": 1}') == 204
        assert status(b'{"a": 1}') == 200
        assert status(b'{"a": 1}', secret="whsec_" + "b" * 32, event_id="other") == 401
        assert status(b'{"a": 2}', event_id="other") == 204
        wait_until(lambda: re.search(r"working on .*\{\"a\": 2\}", program.output) is not None, "the work")
        assert len(re.findall(r"working on .*\{\"a\": 1\}", program.output)) == 1
    finally:
        sender.close()
