"""The manual's receivers, word for word, on their real servers, called by the product's own sender."""

import json
import os
import re
import secrets
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPResponse
from pathlib import Path

import pytest

from scheduler_app.actions.http import Guard, Request, headers_for, parse_networks
from scheduler_app.actions.http.sender import Sender
from scheduler_app.embedded import Redis, free_port
from tests.processes import PATIENCE_SECONDS, Program, wait_until

ROOT = Path(__file__).parents[3]
MANUAL = (ROOT / "docs" / "receivers.md").read_text()
SECRET = "whsec_" + "c2VjcmV0IG9mIGF0IGxlYXN0IDI0IGJ5dGVz"
OTHER = "whsec_" + "b" * 32
#: What a new project has beside the manual's two files.
DJANGO = {
    "project/__init__.py": "",
    "backups/__init__.py": "",
    "project/settings.py": (
        "SECRET_KEY = 'x'\nROOT_URLCONF = 'project.urls'\nUSE_TZ = True\nALLOWED_HOSTS = ['*']\n"
        "INSTALLED_APPS = ['backups']\nDEBUG = False\n"
        "MIDDLEWARE = ['django.middleware.csrf.CsrfViewMiddleware']\n"
        "DATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': 'db', "
        "'OPTIONS': {'timeout': 60}, 'ATOMIC_REQUESTS': True}}\n"
    ),
    "project/urls.py": (
        "from django.urls import path\nfrom backups.views import backup\n"
        "urlpatterns = [path('backups/<name>', backup)]\n"
    ),
    "project/wsgi.py": (
        "from django.core.management import call_command\nfrom django.core.wsgi import get_wsgi_application\n"
        "application = get_wsgi_application()\ncall_command('migrate', run_syncdb=True, verbosity=0)\n"
    ),
}
GUNICORN = ("gunicorn", "--threads", "8", "--bind", "127.0.0.1:{port}")
COMMANDS = {
    "flask": (*GUNICORN, "receiver:app"),
    "fastapi": ("uvicorn", "--host", "127.0.0.1", "--port", "{port}", "receiver:app"),
    "django": (*GUNICORN, "project.wsgi"),
}


def example(name: str) -> str:
    mark = f"<!-- run by tests/integration/receiver/test_examples.py: {name} -->\n```python\n"
    return MANUAL.split(mark)[1].split("```")[0]


@dataclass
class Example:
    """A running receiver, and the folder in which it runs."""

    program: Program
    folder: Path
    port: int

    def count(self, what: str) -> int:
        return len(re.findall(rf"^{re.escape(what)}$", self.program.output, re.MULTILINE))


@pytest.fixture(scope="module", params=COMMANDS)
def receiver(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, redis_server: Redis
) -> Iterator[Example]:
    folder, port = tmp_path_factory.mktemp(request.param), free_port()
    shutil.copy(Path(__file__).with_name("jobs.py"), folder)
    if request.param == "django":
        files = DJANGO | {
            "backups/models.py": example("django models"),
            "backups/views.py": example("django views"),
        }
    else:
        files = {"receiver.py": example(request.param)}
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    program = Program(
        [sys.executable, "-m", *(word.format(port=port) for word in COMMANDS[request.param])],
        folder,
        {
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
            "SIGNING_SECRET": SECRET,
            "REDIS_URL": redis_server.url,
            "DJANGO_SETTINGS_MODULE": "project.settings",
        },
    )
    try:
        program.wait_for(r"Listening at|Uvicorn running")
        yield Example(program, folder, port)
    finally:
        program.kill()


@pytest.fixture
def calls(receiver: Example) -> Iterator["Calls"]:
    sender = Sender(Guard(parse_networks("127.0.0.0/8")))
    yield Calls(sender, receiver.port)
    sender.close()


@dataclass
class Calls:
    """Calls the receiver as a worker does."""

    sender: Sender
    port: int

    def start(
        self,
        name: str,
        order: object,
        *,
        key: str,
        secrets_: tuple[str, ...] = (SECRET,),
        age: timedelta = timedelta(),
        hops: int = 0,
    ) -> None:
        """Begins a callback called `name`."""
        now, body = datetime.now(UTC) - age, json.dumps(order).encode()
        headers = headers_for(
            event_id=key,
            schedule_id="s",
            run_time=now,
            attempt=1,
            now=now,
            user_headers=(),
            body=body,
            signing_secrets=secrets_,
            hops=hops,
        )
        url = f"http://127.0.0.1:{self.port}/backups/everything"
        self.sender.start(Request(name, url, "POST", headers, body, PATIENCE_SECONDS))

    def end(self) -> tuple[str, int | None]:
        """The next callback that ends: its name, and the answer's status."""
        answers = self.sender.wait(PATIENCE_SECONDS)
        while not answers:
            answers = self.sender.wait(PATIENCE_SECONDS)
        assert len(answers) == 1
        return answers[0].key, answers[0].status

    def status(self, order: object, **how: object) -> int | None:
        self.start("call", order, **how)  # type: ignore[arg-type]
        return self.end()[1]


@pytest.fixture
def key() -> str:
    return f"s-1-{secrets.token_hex(6)}"


def test_the_work_of_an_event_is_done_once(receiver: Example, calls: Calls, key: str) -> None:
    assert [calls.status({"n": key}, key=key) for _ in range(3)] == [204, 200, 200]
    assert calls.status({"n": key}, key=f"{key}-next", secrets_=(OTHER, SECRET)) == 204
    assert receiver.count(f"backed up everything {key}") == 2


def test_strangers_replays_and_loops_are_refused(receiver: Example, calls: Calls, key: str) -> None:
    assert calls.status({"n": key}, key=key, secrets_=(OTHER,)) == 401
    assert calls.status({"n": key}, key=key, secrets_=()) == 401
    assert calls.status({"n": key}, key=key, age=timedelta(minutes=6)) == 401
    assert calls.status({"n": key}, key=key, hops=4) == 508
    assert status_of_too_large_body(calls.port, b"x" * 1_048_577) == 413
    assert receiver.count(f"started everything {key}") == 0


def status_of_too_large_body(port: int, body: bytes) -> int:
    """A receiver may answer, and close, before it has read all of the body. libcurl may then find the
    connection closed before it reads the answer, which is there all the same."""
    head = f"POST /backups/everything HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port)) as connection:
        with suppress(ConnectionError):
            connection.sendall(head.encode() + body)
        answer = HTTPResponse(connection)
        answer.begin()
        return answer.status


def test_of_two_deliveries_at_once_one_does_the_work(receiver: Example, calls: Calls, key: str) -> None:
    until = receiver.folder / f"{key}-until"
    order = {"n": key, "until": str(until)}
    calls.start("first", order, key=key)
    drive_until(calls, lambda: receiver.count(f"started everything {key}") == 1)
    calls.start("second", order, key=key)
    assert calls.end() == ("second", 425)
    until.touch()
    assert calls.end() == ("first", 204)
    assert calls.status(order, key=key) == 200
    assert receiver.count(f"started everything {key}") == 1


def test_work_that_fails_is_done_by_the_next_attempt(receiver: Example, calls: Calls, key: str) -> None:
    after = receiver.folder / f"{key}-after"
    order = {"n": key, "after": str(after)}
    assert [calls.status(order, key=key) for _ in range(2)] == [500, 500]
    after.touch()
    assert [calls.status(order, key=key) for _ in range(2)] == [204, 200]
    assert receiver.count(f"backed up everything {key}") == 1


def drive_until(calls: Calls, condition: Callable[[], bool]) -> None:
    """As `wait_until`, for what happens only while the sender is driven."""

    def holds() -> bool:
        assert calls.sender.wait(0.02) == []
        return condition()

    wait_until(holds, "the work to start")
