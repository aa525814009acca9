"""Processes of the last release and of this one work side by side, as they do during an upgrade."""

import io
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.acceptance.chaos.test_upgrade import end
from tests.acceptance.journal import Journal
from tests.acceptance.stack import CODE, Stack
from tests.processes import wait_until

#: The commit of the last release.
RELEASE = "d3cc1dc55246f48704a584c8455a8580076b88b3"
#: A receiver to which nothing is sent: no worker runs.
NOBODY = "https://example.com/"
#: Of each release's API, so many schedules with so many occurrences, one a second.
SCHEDULES = 12
OCCURRENCES = 30


@pytest.fixture(scope="module")
def last_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The last release's code, taken from this repository's history."""
    found = subprocess.run(
        ["git", "archive", RELEASE, "scheduler_app", "api", "beat"], cwd=CODE, capture_output=True
    )
    if found.returncode != 0:
        pytest.fail(
            f"this test needs the last release, commit {RELEASE}, and this checkout does not have it"
            f" ({found.stderr.decode().strip()}); get the whole history: git fetch --unshallow",
            pytrace=False,
        )
    folder = tmp_path_factory.mktemp("last-release")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def releases(
    make_stack: Callable[..., Stack], last_release: Path, tmp_path: Path
) -> Iterator[tuple[Stack, Stack]]:
    """A stack of the last release and one of this, over the same database and the same broker."""
    # A short timeframe, so that the beats expand all the time.
    new = make_stack(PREQUEUER_EVENT_TIMEFRAME_MINUTES="1")
    old = Stack(tmp_path, new.environment | {"PYTHONPATH": str(last_release)}, code=last_release)
    yield old, new
    old.close()


def test_each_stack_runs_its_own_code(releases: tuple[Stack, Stack], last_release: Path) -> None:
    names = ("scheduler_app", "beat")
    show = "import scheduler_app, beat; print(scheduler_app.__file__, beat.__file__)"
    for stack, code in zip(releases, (last_release, CODE), strict=True):
        command = [sys.executable, "-c", show]
        shown = subprocess.check_output(command, cwd=stack.code, env=stack.environment, text=True)
        assert shown.split() == [str(code / name / "__init__.py") for name in names]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_old_and_new_processes_side_by_side_deliver_everything_exactly_once(
    releases: tuple[Stack, Stack], journal: Journal
) -> None:
    old, new = releases
    old.api()
    old_processes = [old.beat("old-beat"), old.worker("old-worker")]
    fields: dict[str, Any] = {
        "rrule": f"FREQ=SECONDLY;COUNT={OCCURRENCES}",
        "method": "POST",
        "headers": {"Authorization": "Bearer of a receiver"},
        "json": {"hello": "world"},
        "tags": ["upgrade"],
    }
    made = {
        f"/old/{number}": old.create(journal.url(f"/old/{number}"), **fields) for number in range(SCHEDULES)
    }
    wait_until(lambda: len(journal.calls["/old/0"]) >= 2, "the last release's first calls")
    new.worker("new-worker")
    new.beat("new-beat")
    new.api()
    made |= {
        f"/new/{number}": new.create(journal.url(f"/new/{number}"), **fields) for number in range(SCHEDULES)
    }
    # The old ones go on beside the new ones for half of the load, and end in the middle of it.
    wait_until(lambda: len(journal.calls["/new/0"]) >= OCCURRENCES // 2, "half of the new schedules' calls")
    for process in old_processes:
        end(process)
    assert len(journal.calls["/new/0"]) < OCCURRENCES, "the load has to outlast the last release"
    workers: dict[str, set[str]] = {"/old": set(), "/new": set()}
    for path, schedule_id in made.items():
        events = new.finished(schedule_id, OCCURRENCES)
        assert {event["state"] for event in events} == {"completed"}, f"{path}\n{new.logs()}\n{old.logs()}"
        calls = Counter(call.run_time for call in journal.calls[path])
        assert {call.seen.body for call in journal.calls[path]} == {b'{"hello":"world"}'}
        assert len(calls) == OCCURRENCES, f"{path} lost {OCCURRENCES - len(calls)}"
        assert max(calls.values()) == 1, f"{path} was sent {calls.most_common(1)}"
        # A message that one release could not read would have been recovered, 10 s later.
        told = " ".join(line["message"] for event in events for line in event["status"])
        assert "lost" not in told, f"{path}\n{new.logs()}\n{old.logs()}"
        workers[path[:4]] |= {event["attempts"][0]["worker"].split("@")[0] for event in events}
    assert workers == {"/old": {"old-worker", "new-worker"}, "/new": {"old-worker", "new-worker"}}


def test_the_owner_of_one_environment_key_sees_no_difference_after_the_upgrade(
    make_stack: Callable[..., Stack], last_release: Path, tmp_path: Path
) -> None:
    """One key of API_KEYS, no tenant, and no setting for either: all that was there answers as before."""
    key = {"X-API-Key": "0123456789abcdef"}
    new = make_stack(API_KEYS=key["X-API-Key"])
    old = Stack(tmp_path, new.environment | {"PYTHONPATH": str(last_release)}, code=last_release)
    one = {"name": "Nightly", "rrule": "DTSTART:20400101T020000Z\nFREQ=DAILY", "callback_url": NOBODY}
    of_one = ("", "/events/pending", "/events/history", "/preview")
    asked = ["schedules", "schedules/weekly", "events?state=ready_queue"]
    asked += [f"schedules/nightly{rest}" for rest in of_one]
    try:
        old.api()
        for body in (one | {"id": "nightly", "tags": ["a"]}, one | {"id": "weekly", "signing": True}):
            answer = requests.post(f"{old.url}/api/schedules", json=body, headers=key)
            assert answer.status_code == 201, answer.text
        for path in ("nightly/trigger", "weekly/pause"):
            assert requests.post(f"{old.url}/api/schedules/{path}", headers=key).ok
        before = {path: requests.get(f"{old.url}/api/{path}", headers=key).json() for path in asked}
    finally:
        old.close()
    new.api()
    after = {path: requests.get(f"{new.url}/api/{path}", headers=key).json() for path in asked}
    assert [each for path in asked for each in _differences(before[path], after[path], path)] == []
    assert requests.get(f"{new.url}/api/schedules").status_code == 401
    page = requests.post(f"{new.url}/sign-in", data={"key": key["X-API-Key"]})
    assert page.status_code == 403  # a form of nobody's page
    with requests.Session() as browser:
        found = browser.get(f"{new.url}/sign-in").text
        token = found.split('name="form_token" value="')[1].split('"')[0]
        signed_in = {"key": key["X-API-Key"], "form_token": token}
        answer = browser.post(f"{new.url}/sign-in", data=signed_in, allow_redirects=False)
        assert answer.status_code == 303
        assert "Nightly" in browser.get(f"{new.url}/schedules").text


def _differences(before: Any, after: Any, where: str) -> list[str]:
    """What an answer had and has no more, or has otherwise; it may have more. Descriptions
    are for people, and say more with each release."""
    if isinstance(before, dict) and isinstance(after, dict):
        pairs = [
            (before[name], after.get(name), f"{where}/{name}") for name in before if name != "description"
        ]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [(old, new, f"{where}/{n}") for n, (old, new) in enumerate(zip(before, after, strict=True))]
    else:
        return [] if before == after else [f"{where}: {before!r} became {after!r}"]
    return [each for pair in pairs for each in _differences(*pair)]
